use std::path::PathBuf;

use interpreter_messages::journal::{Finish, Instruction, ResponseEnd, UserInput};
use interpreter_messages::model::WireApi;
use interpreter_messages::policy::{ApprovalPolicy, SandboxMode};
use interpreter_messages::tool::{
    ChangeKind, Cut, Effects, Exec, ExecOutput, ExitStatus, FileChange, InvalidCall, Meaning,
    Operation, Plan, ToolOutput,
};
use interpreter_messages::wire::WireEncoder;
use interpreter_messages::{ClientId, ProcessId, RequestNo, Seq, StreamId, TurnId};
use proptest::prelude::*;

use super::*;

/// Writes items in a form that is easy to read; the real encoder is tested with the wire.
struct Plain;

impl WireEncoder for Plain {
    fn wire(&self) -> WireApi {
        WireApi::Chat
    }

    fn path(&self) -> &'static str {
        "/plain"
    }

    fn head(&self, head: &WireHead) -> Bytes {
        let tools: Vec<&str> = head.tools.iter().map(|tool| tool.name.as_str()).collect();
        Bytes::from(json!({"model": head.model, "params": head.params, "system": head.system, "tools": tools}).to_string() + "[")
    }

    fn head_has_items(&self, _: &WireHead) -> bool {
        false
    }

    fn item(&self, item: &WireItem, caps: WireCaps) -> Bytes {
        Bytes::from(format!(
            "{item:?}{}",
            if caps.vision { " (with eyes)" } else { "" }
        ))
    }

    fn tail(&self, _: &WireHead) -> Bytes {
        Bytes::from_static(b"]")
    }
}

fn engine(id: &str) -> Engine {
    let profile = Profile::load(id, std::path::Path::new("/nowhere"))
        .expect("a profile of the program loads");
    Engine::new(Arc::new(profile), Arc::new(Plain))
}

fn model() -> Arc<ModelProfile> {
    Arc::new(ModelProfile {
        id: "m".to_owned(),
        provider: "p".to_owned(),
        provider_name: "P".to_owned(),
        wire: WireApi::Chat,
        context_window: None,
        vision: false,
        reasoning: true,
        thinking_toggle: true,
        effort: None,
        echo_reasoning: true,
        prices: None,
    })
}

fn facts() -> EnvFacts {
    EnvFacts {
        cwd: PathBuf::from("/work"),
        shell: "bash".to_owned(),
        date: "2026-12-01".to_owned(),
        timezone: "Europe/Berlin".to_owned(),
        os: "linux".to_owned(),
        os_version: "6.18".to_owned(),
        git: true,
        sandbox: SandboxMode::WorkspaceWrite,
        roots: vec![PathBuf::from("/work")],
        network: false,
        approval: ApprovalPolicy::OnRequest,
        instructions: vec![Instruction {
            path: PathBuf::from("/work/AGENTS.md"),
            text: "Use tabs.\n".to_owned(),
            cut: true,
        }],
    }
}

fn records(entries: Vec<Entry>) -> Vec<Arc<Record>> {
    let record = |(at, entry)| {
        Arc::new(Record {
            seq: Seq(at as u64),
            at: jiff::Timestamp::UNIX_EPOCH,
            entry,
        })
    };
    entries.into_iter().enumerate().map(record).collect()
}

const TURN: TurnId = TurnId(1);

fn says(text: &str) -> Entry {
    Entry::UserInput(UserInput {
        turn: TURN,
        client: ClientId::new(text),
        parts: vec![Part::Text {
            text: text.to_owned(),
        }],
    })
}

fn ended() -> Entry {
    let stream = StreamId {
        turn: TURN,
        request: RequestNo(0),
        attempt: 0,
    };
    Entry::ResponseEnded(ResponseEnd {
        stream,
        finish: Finish::Stop,
        usage: None,
    })
}

fn exec_call(id: &str) -> ToolCall {
    let exec = Exec {
        command: "ls".to_owned(),
        workdir: None,
        shell: None,
        login: false,
        tty: false,
        yield_ms: None,
        timeout_ms: None,
        max_output_tokens: None,
        escalate: false,
        justification: None,
    };
    ToolCall {
        id: CallId::new(id),
        name: "exec_command".to_owned(),
        arguments: "{\"cmd\":\"ls\"}".to_owned(),
        meaning: Meaning::Run(Operation::Exec(exec)),
        repaired: None,
    }
}

fn calls(call: ToolCall) -> Entry {
    Entry::ToolCall { turn: TURN, call }
}

fn outcome(id: &str, outcome: ToolOutcome) -> Entry {
    Entry::ToolOutcome {
        turn: TURN,
        call: CallId::new(id),
        outcome,
    }
}

fn output(text: &str) -> ExecOutput {
    ExecOutput {
        text: text.to_owned(),
        total_bytes: text.len() as u64,
        total_lines: text.lines().count() as u64,
        wall_ms: 1234,
        exit: Some(ExitStatus::Code(0)),
        ..ExecOutput::default()
    }
}

fn ok(output: ExecOutput) -> ToolOutcome {
    ToolOutcome::Ok {
        output: ToolOutput::Exec(output),
    }
}

fn body(request: &WireRequest) -> String {
    String::from_utf8(request.to_vec()).expect("the test encoder writes UTF-8")
}

fn shaped(id: &str, entries: Vec<Entry>) -> String {
    let mut engine = engine(id);
    body(
        &engine
            .shape(&records(entries), &model())
            .expect("it can be shaped"),
    )
}

#[test]
fn the_first_request_of_each_profile() {
    for id in crate::builtin_ids() {
        let mut engine = engine(id);
        let request = engine
            .shape(
                &records(vec![says("hi"), Entry::Environment(facts())]),
                &model(),
            )
            .expect("fine");
        insta::assert_snapshot!(format!("first_{id}"), body(&request).replace("\\n", "\n"));
    }
}

#[test]
fn what_the_model_reads_of_each_outcome() {
    let cut = ExecOutput {
        cut: Some(Cut { at: 5, bytes: 4000 }),
        total_bytes: 4010,
        ..output("head\ntail\n")
    };
    let running = ExecOutput {
        exit: None,
        process: Some(ProcessId(7)),
        ..output("so far\n")
    };
    let failing = ExecOutput {
        exit: Some(ExitStatus::Code(3)),
        ..output("")
    };
    let change = FileChange {
        path: PathBuf::from("/work/src/a.rs"),
        kind: ChangeKind::Update,
        moved_to: None,
        before: None,
        after: None,
        diff: String::new(),
    };
    let patch = ToolCall {
        name: "apply_patch".to_owned(),
        ..exec_call("c")
    };
    let plan = ToolCall {
        name: "update_plan".to_owned(),
        ..exec_call("c")
    };
    let unknown = ToolCall {
        name: "exec".to_owned(),
        meaning: Meaning::Invalid(InvalidCall::UnknownTool {
            nearest: Some("exec_command".to_owned()),
        }),
        ..exec_call("c")
    };
    let bad = ToolCall {
        meaning: Meaning::Invalid(InvalidCall::BadArguments {
            error: "missing field `cmd`".to_owned(),
            raw: "{}".to_owned(),
        }),
        ..exec_call("c")
    };
    let repaired = ToolCall {
        repaired: Some("`n` was read as a number".to_owned()),
        ..exec_call("c")
    };
    let failed = || ToolOutcome::Failed {
        error: "cannot run x: no such file".to_owned(),
    };
    let crashed = ToolOutcome::Crashed {
        effects: Effects::Unknown,
        cause: "it panicked".to_owned(),
        tail: "last words".to_owned(),
    };
    let cases = [
        ("ok", exec_call("c"), ok(output("one\ntwo\n"))),
        ("cut", exec_call("c"), ok(cut)),
        ("running", exec_call("c"), ok(running)),
        ("exit 3, empty", exec_call("c"), ok(failing)),
        ("failed", exec_call("c"), failed()),
        (
            "denied",
            exec_call("c"),
            ToolOutcome::Denied {
                reason: "the user said no".to_owned(),
            },
        ),
        (
            "timed out",
            exec_call("c"),
            ToolOutcome::TimedOut {
                after_ms: 1000,
                output: output("slow\n"),
            },
        ),
        (
            "aborted",
            exec_call("c"),
            ToolOutcome::Aborted {
                reason: "interrupted".to_owned(),
                output: None,
            },
        ),
        ("crashed", exec_call("c"), crashed),
        (
            "patched",
            patch,
            ToolOutcome::Ok {
                output: ToolOutput::Changed {
                    changes: vec![change],
                },
            },
        ),
        (
            "plan",
            plan,
            ToolOutcome::Ok {
                output: ToolOutput::Plan {
                    plan: Plan {
                        explanation: None,
                        steps: Vec::new(),
                    },
                },
            },
        ),
        ("unknown tool", unknown, failed()),
        ("bad arguments", bad, failed()),
        ("repaired", repaired, ok(output("x"))),
    ];
    let profile = Profile::load("native", std::path::Path::new("/nowhere")).expect("it loads");
    let shown: Vec<String> = cases
        .into_iter()
        .map(|(name, call, outcome)| {
            let (parts, error) =
                render::render(&profile, &call, &outcome, std::path::Path::new("/work"))
                    .expect("it renders");
            let [Part::Text { text }] = &parts[..] else {
                panic!("{parts:?}")
            };
            format!("=== {name}{}\n{text}", if error { " (error)" } else { "" })
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn what_comes_while_calls_are_open_waits_for_their_results() {
    let all = shaped(
        "minimal",
        vec![
            says("go"),
            calls(exec_call("a")),
            calls(exec_call("b")),
            ended(),
            outcome("b", ok(output("B"))),
            says("and"),
            outcome("a", ok(output("A"))),
        ],
    );
    let at = |text: &str| {
        all.find(text)
            .unwrap_or_else(|| panic!("{text} is missing: {all}"))
    };
    assert!(
        at("\"A\"") < at("\"B\"") && at("\"B\"") < at("\"and\""),
        "{all}"
    );
}

#[test]
fn an_interruption_is_told_and_a_call_without_result_is_refused() {
    let interrupted = Entry::TurnEnded {
        turn: TURN,
        end: TurnEnd::Interrupted {
            by: "user".to_owned(),
        },
    };
    let aborted = ToolOutcome::Aborted {
        reason: "interrupted by the user".to_owned(),
        output: None,
    };
    let all = shaped(
        "native",
        vec![
            says("go"),
            calls(exec_call("a")),
            ended(),
            outcome("a", aborted),
            interrupted,
            says("on"),
        ],
    );
    assert!(all.contains("<turn_aborted>"), "{all}");
    let error = engine("native").shape(
        &records(vec![says("go"), calls(exec_call("a")), ended()]),
        &model(),
    );
    assert!(matches!(error, Err(ShapeError::OpenCall { call }) if call.as_str() == "a"));
}

#[test]
fn another_model_encodes_everything_again_and_counts_it() {
    let mut engine = engine("native");
    let first = engine
        .shape(&records(vec![says("see")]), &model())
        .expect("fine");
    let eyes = Arc::new(ModelProfile {
        id: "eyes".to_owned(),
        vision: true,
        ..(*model()).clone()
    });
    let second = engine
        .shape(&records(vec![says("and now")]), &eyes)
        .expect("fine");
    assert!(!body(&first).contains("with eyes"));
    assert_eq!(body(&second).matches("with eyes").count(), 2);
    assert_eq!(engine.rebases(), ["the model is now eyes"]);
}

#[test]
fn a_wire_that_the_harness_does_not_speak_is_refused_by_name() {
    let other = Arc::new(ModelProfile {
        wire: WireApi::Messages,
        ..(*model()).clone()
    });
    let error = engine("native")
        .shape(&records(vec![says("x")]), &other)
        .expect_err("refused");
    assert_eq!(
        error.to_string(),
        "the harness native does not speak the API \"messages\"; it speaks chat"
    );
}

#[test]
fn the_head_of_the_native_harness_stays_small() {
    let head = engine("native").wire_head(&model()).expect("fine");
    let tools = serde_json::to_string(&head.tools).expect("JSON").len();
    let system: usize = head.system.iter().map(String::len).sum();
    // The whole first request is to stay within 6 KB with the surroundings (goal of the product).
    assert!(tools + system < 5400, "{tools} + {system}");
}

/// Turns of a random but valid conversation: texts, calls and their results in any order, steering, interruptions.
fn histories() -> impl Strategy<Value = Vec<Entry>> {
    let turn = (0usize..4, any::<bool>(), any::<bool>(), any::<bool>());
    prop::collection::vec(turn, 1..5).prop_map(|turns| {
        let mut entries = Vec::new();
        for (at, (count, backwards, steer, interrupt)) in turns.into_iter().enumerate() {
            entries.push(says(&format!("input {at}")));
            if at == 0 {
                entries.push(Entry::Environment(facts()));
            }
            entries.push(Entry::Reasoning {
                turn: TURN,
                text: "hm".to_owned(),
                opaque: None,
            });
            entries.push(Entry::AssistantText {
                turn: TURN,
                text: format!("answer {at}"),
            });
            let ids: Vec<String> = (0..count).map(|n| format!("c{at}-{n}")).collect();
            entries.extend(ids.iter().map(|id| calls(exec_call(id))));
            entries.push(ended());
            let mut outcomes: Vec<Entry> =
                ids.iter().map(|id| outcome(id, ok(output(id)))).collect();
            if backwards {
                outcomes.reverse();
            }
            entries.extend(outcomes);
            if steer {
                entries.push(says(&format!("steer {at}")));
            }
            let end = if interrupt {
                TurnEnd::Interrupted {
                    by: "user".to_owned(),
                }
            } else {
                TurnEnd::Completed
            };
            entries.push(Entry::TurnEnded { turn: TURN, end });
        }
        entries
    })
}

proptest! {
    #[test]
    fn each_request_extends_the_one_before_and_a_replay_gives_the_same_bytes(entries in histories()) {
        let all = records(entries);
        let mut live = engine("native");
        let mut before: Option<Vec<u8>> = None;
        let mut from = 0;
        for at in 0..all.len() {
            // Session asks after inputs and results, never with a call open.
            let boundary = matches!(all[at].entry, Entry::TurnEnded { .. }) || at + 1 == all.len();
            if !boundary {
                continue;
            }
            let request = live.shape(&all[from..=at], &model()).expect("it can be shaped");
            from = at + 1;
            let bytes = request.to_vec();
            if let Some(before) = &before {
                prop_assert_eq!(&bytes[..before.len() - 1], &before[..before.len() - 1]);
            }
            let again = engine("native").shape(&all[..=at], &model()).expect("it can be shaped");
            prop_assert_eq!(&again.to_vec(), &bytes);
            before = Some(bytes);
        }
    }
}

#[test]
fn reasoning_goes_back_only_where_the_model_wants_it() {
    let thoughts = Entry::Reasoning {
        turn: TURN,
        text: "because".to_owned(),
        opaque: None,
    };
    let entries = || {
        vec![
            says("go"),
            thoughts.clone(),
            calls(exec_call("a")),
            ended(),
            outcome("a", ok(output("A"))),
        ]
    };
    assert!(shaped("native", entries()).contains("because"));
    let quiet = Arc::new(ModelProfile {
        echo_reasoning: false,
        ..(*model()).clone()
    });
    let request = engine("native")
        .shape(&records(entries()), &quiet)
        .expect("fine");
    assert!(!body(&request).contains("because"));
}
