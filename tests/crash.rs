//! Every actor is crashed at every message of a scripted turn with text, two tools and an approval.
//!
//! A crash of Session must be invisible: same requests, same conversation, each tool ran once. A crash of another
//! actor may be told to the model, but nothing runs twice, the conversation stays valid, and the session goes on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use interpreter_messages::FaultSwitch;
use interpreter_messages::approval::Decision;
use interpreter_messages::hub::Origin;
use interpreter_messages::journal::TurnEnd;
use interpreter_messages::policy::ApprovalPolicy;
use interpreter_messages::ui::Event;
use serde_json::{Value, json};

use crate::support::processes;
use crate::support::program::World;
use crate::support::server::{Answer, Server};
use crate::support::tree::{Running, settings};

/// What a drill leaves.
#[derive(Debug)]
struct Drill {
    end: Event,
    requests: Vec<Value>,
    runs: usize,
    patched: String,
    conversation: Vec<Value>,
}

/// One turn: a command that counts its runs, and a patch, both asked for; then a second turn of plain text.
async fn drill(fault: FaultSwitch) -> Drill {
    let world = World::new();
    world.write("a.txt", "one\n");
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n*** End Patch\n";
    let two_calls = json!({"choices":[{"index":0,"delta":{"content":"Working.","tool_calls":[
        {"index":0,"id":"c1","type":"function","function":{"name":"exec_command","arguments":json!({"cmd":"echo ran >> runs.txt"}).to_string()}},
        {"index":1,"id":"c2","type":"function","function":{"name":"apply_patch","arguments":json!({"input":patch}).to_string()}},
    ]}}]});
    let finish = json!({"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]});
    let first = move || {
        Answer::sse(format!(
            "data: {two_calls}\n\ndata: {finish}\n\ndata: [DONE]\n\n"
        ))
    };
    // The model answers by what it is asked, so that a request that is sent again gets the same answer again.
    let server = Server::answering(move |seen| {
        let body = String::from_utf8_lossy(&seen.body);
        if body.contains("and now ") {
            Answer::text("In words.")
        } else if body.contains("\"role\":\"tool\"") {
            Answer::text("Done.")
        } else {
            first()
        }
    });
    let settings = settings(&world, &server, ApprovalPolicy::Untrusted);
    let session = settings.meta.id;
    let mut running = Running::start(
        &world,
        settings,
        Origin::New { ephemeral: false },
        fault,
        Decision::Approve,
    )
    .await;
    running.submit("go").await;
    let end = running.turn_end().await;
    // A crash of the harness fails the turn it comes in; what the user says next goes through.
    for word in ["in words", "shortly", "at last"] {
        if matches!(end, Event::Broken { .. }) {
            break;
        }
        running.submit(&format!("and now {word}")).await;
        if let Event::TurnEnded {
            end: TurnEnd::Completed,
            ..
        } = running.turn_end().await
        {
            break;
        }
    }
    assert!(running.tree.shutdown().await, "the tree ends in time");
    assert_eq!(
        processes::of_session(session),
        Vec::<String>::new(),
        "a process is left"
    );
    let rollout = std::fs::read_to_string(&world.sessions()[0]).expect("the session file is there");
    let conversation = rollout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("each line is JSON"))
        .filter(|line| line["type"] == "response_item")
        .map(|line| line["payload"].clone())
        .collect();
    Drill {
        end,
        requests: server
            .seen()
            .iter()
            .map(crate::support::server::Seen::json)
            .collect(),
        runs: std::fs::read_to_string(world.project().join("runs.txt"))
            .unwrap_or_default()
            .lines()
            .count(),
        patched: world.read("a.txt"),
        conversation,
    }
}

/// A switch that panics once, at the n-th time (from 0) that `point` is hit.
fn once_at(point: String, nth: usize) -> FaultSwitch {
    let hits = Mutex::new(0_usize);
    FaultSwitch::new(move |at| {
        if at == point {
            let mut hits = hits
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let now = *hits;
            *hits += 1;
            drop(hits);
            assert!(now != nth, "injected at {at}, hit {nth}");
        }
    })
}

/// How often each point is hit in a run without a fault.
async fn points() -> (Drill, BTreeMap<String, usize>) {
    let hits = Arc::new(Mutex::new(BTreeMap::new()));
    let count = Arc::clone(&hits);
    let clean = drill(FaultSwitch::new(move |at| {
        *count
            .lock()
            .expect("nothing panics here")
            .entry(at.to_owned())
            .or_insert(0) += 1;
    }))
    .await;
    let hits = hits.lock().expect("nothing panics here").clone();
    (clean, hits)
}

/// What the model was asked, each request once: a request that was sent again counts as one.
fn distinct(requests: &[Value]) -> Vec<Value> {
    let mut distinct = requests.to_vec();
    distinct.dedup();
    distinct
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_of_session_after_any_commit_is_invisible() {
    let (clean, points) = points().await;
    let commits: Vec<_> = points
        .keys()
        .filter(|point| point.starts_with("session.committed."))
        .cloned()
        .collect();
    assert!(
        commits.len() >= 8,
        "a turn with two tools has more commits: {points:?}"
    );
    assert_eq!((clean.runs, clean.patched.as_str()), (1, "1\n"));
    for point in commits {
        let crashed = drill(once_at(point.clone(), 0)).await;
        assert!(
            matches!(
                crashed.end,
                Event::TurnEnded {
                    end: TurnEnd::Completed,
                    ..
                }
            ),
            "{point}: {:?}",
            crashed.end
        );
        assert_eq!(crashed.runs, 1, "{point}: the command ran once");
        assert_eq!(crashed.patched, "1\n", "{point}");
        assert_eq!(
            distinct(&crashed.requests).len(),
            clean.requests.len(),
            "{point}: the same requests"
        );
        assert_eq!(
            crashed.conversation.len(),
            clean.conversation.len(),
            "{point}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_of_any_actor_at_any_message_runs_nothing_twice_and_the_session_goes_on() {
    let (clean, points) = points().await;
    let mut drills = 0;
    for (point, hits) in points
        .iter()
        .filter(|(point, _)| !point.starts_with("session.committed."))
    {
        // The first and the last time are the moments that differ; those between repeat the first.
        for nth in [Some(0), (*hits > 1).then_some(hits - 1)]
            .into_iter()
            .flatten()
        {
            let crashed = drill(once_at(point.clone(), nth)).await;
            drills += 1;
            assert!(
                crashed.runs <= 1,
                "{point}/{nth}: the command ran {} times",
                crashed.runs
            );
            assert!(
                ["one\n", "1\n"].contains(&crashed.patched.as_str()),
                "{point}/{nth}: {}",
                crashed.patched
            );
            assert!(
                !matches!(crashed.end, Event::Broken { .. }),
                "{point}/{nth}: {:?}",
                crashed.end
            );
            let last = crashed
                .requests
                .last()
                .unwrap_or_else(|| panic!("{point}/{nth}: no request"));
            valid(last, &format!("{point}/{nth}"));
            assert!(
                last.to_string().contains("and now "),
                "{point}/{nth}: the session goes on"
            );
        }
    }
    assert!(drills > 30, "only {drills} drills: {points:?}");
    valid(clean.requests.last().expect("the clean run asked"), "clean");
}

/// Each call has its result directly after it, and nothing else has one.
pub fn valid(request: &Value, what: &str) {
    let messages = request["messages"].as_array().expect("messages are a list");
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            assert!(
                open.iter().any(|call| call == id),
                "{what}: a result without a call: {request:#}"
            );
            open.retain(|call| call != id);
            continue;
        }
        assert!(
            open.is_empty(),
            "{what}: {open:?} have no result: {request:#}"
        );
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            open.push(call["id"].as_str().unwrap_or_default().to_owned());
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            assert!(
                serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object()),
                "{what}"
            );
        }
    }
    assert!(
        open.is_empty(),
        "{what}: {open:?} have no result at the end"
    );
}
