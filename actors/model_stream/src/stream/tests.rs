//! The handed cases over real HTTP, retries, faults of recordings, and the actor's ends.

use std::sync::Arc;
use std::time::Instant;

use interpreter_messages::model::{Endpoint, ModelChoice, ModelProfile, WireApi};
use interpreter_messages::sink::Attachment;
use interpreter_messages::stream::{CallArguments, ModelItem, ModelResponse};
use interpreter_messages::wire::{WireRequest, WireTool};
use interpreter_messages::{RequestNo, StreamId, TurnId, UiId};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// One answer of the test's server.
#[derive(Clone, Default)]
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// Offsets at which it flushes and waits 20 ms.
    flush_at: Vec<usize>,
    /// Waits after an offset.
    pace: Vec<(usize, u64)>,
    /// Keeps the socket open this long after the body.
    hold_ms: u64,
    /// Ends the body without saying so.
    cut: bool,
}

/// A server that gives these answers in order; returns its base URL.
async fn serve(answers: Vec<Answer>) -> (String, tokio::sync::mpsc::UnboundedReceiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("loopback has a free port");
    let url = format!("http://{}/v1", listener.local_addr().expect("it is bound"));
    let (sender, seen) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.expect("a client comes");
            let request = read_request(&mut stream).await;
            // The test may not look at requests.
            let _ = sender.send(request);
            write_answer(&mut stream, &answer).await;
        }
    });
    (url, seen)
}

async fn read_request(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).await.unwrap_or(0);
        bytes.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                line.to_lowercase()
                    .strip_prefix("content-length: ")
                    .map(str::to_owned)
            });
            if count == 0
                || length
                    .and_then(|length| length.parse().ok())
                    .is_none_or(|length: usize| body.len() >= length)
            {
                return bytes;
            }
        }
    }
}

async fn write_answer(stream: &mut TcpStream, answer: &Answer) {
    let mut head = format!(
        "HTTP/1.1 {} x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n",
        answer.status
    );
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut stops: Vec<(usize, u64)> = answer
        .flush_at
        .iter()
        .map(|at| (*at, 20))
        .chain(answer.pace.clone())
        .collect();
    stops.sort_unstable();
    stops.push((answer.body.len(), 0));
    let mut from = 0;
    // A client that has what it needs may close first.
    let _ = stream.write_all(format!("{head}\r\n").as_bytes()).await;
    for (at, wait) in stops {
        let piece = &answer.body[from..at.min(answer.body.len())];
        from = at.min(answer.body.len());
        if !piece.is_empty() {
            let _ = stream
                .write_all(format!("{:x}\r\n", piece.len()).as_bytes())
                .await;
            let _ = stream.write_all(piece).await;
            let _ = stream.write_all(b"\r\n").await;
            let _ = stream.flush().await;
        }
        sleep(Duration::from_millis(wait)).await;
    }
    sleep(Duration::from_millis(answer.hold_ms)).await;
    if !answer.cut {
        let _ = stream.write_all(b"0\r\n\r\n").await;
    }
}

fn start(transport: Transport, tools: &[&str], idle: Duration, retries: u32) -> StartStream {
    let profile = ModelProfile {
        id: "mock-small".to_owned(),
        provider: "mock".to_owned(),
        provider_name: "Mock".to_owned(),
        wire: WireApi::Chat,
        context_window: None,
        vision: false,
        reasoning: false,
        thinking_toggle: false,
        effort: None,
        echo_reasoning: false,
        prices: None,
    };
    let endpoint = Endpoint {
        provider: "mock".to_owned(),
        transport,
        request_max_retries: retries,
        stream_max_retries: 0,
        idle_timeout: idle,
    };
    let tool = |name: &&str| WireTool {
        name: (*name).to_owned(),
        description: String::new(),
        parameters: json!({"type": "object"}),
        strict: None,
    };
    let request = WireRequest {
        wire: WireApi::Chat,
        path: "/chat/completions",
        headers: Vec::new(),
        body: vec![
            Bytes::from_static(b"{\"messages\":["),
            Bytes::from_static(b"]}"),
        ],
        tools: tools.iter().map(tool).collect::<Vec<_>>().into(),
    };
    StartStream {
        stream: StreamId {
            turn: TurnId(1),
            request: RequestNo(0),
            attempt: 0,
        },
        request: Arc::new(request),
        model: ModelChoice {
            profile: Arc::new(profile),
            endpoint: Arc::new(endpoint),
        },
        delay: Duration::ZERO,
    }
}

fn http(base_url: String) -> Transport {
    let (key, key_hint) = (
        Some(interpreter_messages::Secret::new("sk-canary-1")),
        Some("the environment variable MOCK_KEY".to_owned()),
    );
    Transport::Http(HttpTransport {
        base_url,
        key,
        key_hint,
        headers: Vec::new(),
        query: Vec::new(),
    })
}

/// Everything that a UI was shown.
struct Screen {
    sink: EventSink,
}

impl Screen {
    fn new() -> Self {
        let sink = EventSink::new();
        sink.attach(Attachment {
            ui: UiId(1),
            deltas: true,
            lossless: true,
            since: None,
            wake: Box::new(|| {}),
        });
        Self { sink }
    }

    fn events(&self) -> Vec<Event> {
        self.sink
            .drain(UiId(1))
            .events
            .into_iter()
            .map(|numbered| numbered.event)
            .collect()
    }
}

fn texts(events: &[Event], wanted: DeltaKind) -> String {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Delta { kind, text, .. } if *kind == wanted => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

fn case(name: &str) -> (Value, Vec<u8>) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/cases");
    let expected =
        std::fs::read(format!("{folder}/{name}.expected.json")).expect("the case is there");
    let body = std::fs::read(format!("{folder}/{name}.txt")).expect("its body is there");
    (
        serde_json::from_slice(&expected).expect("a case is JSON"),
        body,
    )
}

/// Runs a handed case and checks all that it says of one response.
async fn check(name: &str) {
    let (case, body) = case(name);
    let offsets = |value: &Value| {
        value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_u64)
            .map(|at| usize::try_from(at).expect("small"))
            .collect()
    };
    let pace = case["pace"].as_array().into_iter().flatten();
    let answer = Answer {
        status: u16::try_from(case["status"].as_u64().expect("a status")).expect("small"),
        headers: vec![("content-type".to_owned(), "text/event-stream".to_owned())],
        body,
        flush_at: offsets(&case["flush_at"]),
        pace: pace
            .map(|stop| {
                (
                    usize::try_from(stop["after_byte"].as_u64().expect("an offset"))
                        .expect("small"),
                    stop["wait_ms"].as_u64().expect("a wait"),
                )
            })
            .collect(),
        ..Answer::default()
    };
    let (url, mut seen) = serve(vec![answer]).await;
    let tools: Vec<&str> = case["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let idle = Duration::from_millis(
        case["settings"]["stream_idle_timeout_ms"]
            .as_u64()
            .unwrap_or(5000),
    );
    let screen = Screen::new();
    let outcome = ask(
        start(http(url), &tools, idle, 0),
        HttpClient::new(),
        screen.sink.clone(),
    )
    .await;
    let expect = &case["expect"];
    let shown = texts(&screen.events(), DeltaKind::Text);
    let trim = |text: &str| {
        if expect["text_compare"] == "trimmed" {
            text.trim().to_owned()
        } else {
            text.to_owned()
        }
    };
    assert_eq!(
        trim(&shown),
        expect["text"].as_str().unwrap_or_default(),
        "{name}"
    );
    for forbidden in expect["forbid_text"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        assert!(!shown.contains(forbidden), "{name}: {forbidden}");
    }
    match outcome {
        StreamOutcome::Done(response) => {
            assert_eq!(expect["outcome"], "complete", "{name}");
            whole(name, expect, &response);
        }
        StreamOutcome::Failed(failure) => {
            assert!(expect["outcome"] != "complete", "{name}: {}", failure.error);
            assert_eq!(
                json!(failure.error.class),
                expect["error"]["class"],
                "{name}"
            );
            assert_eq!(
                json!(failure.retryable),
                expect["error"]["retryable"],
                "{name}"
            );
            let words = expect["error"]["message_has"].as_str().unwrap_or_default();
            assert!(
                failure.error.message.contains(words),
                "{name}: {}",
                failure.error
            );
        }
    }
    assert!(seen.recv().await.is_some());
    assert!(seen.try_recv().is_err(), "{name}: one request");
}

fn whole(name: &str, expect: &Value, response: &ModelResponse) {
    assert_eq!(json!(response.finish), expect["finish"], "{name}");
    let calls: Vec<_> = response
        .items
        .iter()
        .filter_map(|item| match item {
            ModelItem::ToolCall {
                id,
                name,
                arguments,
            } => Some((id, name, arguments)),
            _ => None,
        })
        .collect();
    let expected = expect["tool_calls"].as_array().expect("a list of calls");
    assert_eq!(calls.len(), expected.len(), "{name}: {calls:?}");
    for ((id, tool, arguments), expected) in calls.into_iter().zip(expected) {
        if let Some(wanted) = expected["id"].as_str() {
            assert_eq!(id.as_deref(), Some(wanted), "{name}");
        }
        assert_eq!(tool, expected["name"].as_str().expect("a name"), "{name}");
        match arguments {
            CallArguments::Object { json, .. } => {
                assert_eq!(
                    serde_json::from_str::<Value>(json).expect("an object"),
                    expected["arguments"],
                    "{name}"
                );
            }
            CallArguments::Broken { .. } => assert_eq!(expected["invalid"], true, "{name}"),
        }
    }
    if let Some(reasoning) = expect["reasoning"].as_str() {
        let item = ModelItem::Reasoning {
            text: reasoning.to_owned(),
            opaque: None,
        };
        assert!(
            response.items.contains(&item),
            "{name}: {:?}",
            response.items
        );
    }
    for (key, value) in expect["usage"].as_object().into_iter().flatten() {
        assert_eq!(json!(response.usage)[key], *value, "{name}: {key}");
    }
}

#[tokio::test]
async fn every_handed_case_comes_out_as_it_says() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/cases");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("the cases are there")
        .flatten()
        .filter_map(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .strip_suffix(".expected.json")
                .map(str::to_owned)
        })
        .collect();
    names.sort();
    assert!(names.len() >= 13, "{names:?}");
    for name in names {
        check(&name).await;
    }
}

#[test]
fn usage_is_normalised_and_charged_once() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/usage");
    for entry in std::fs::read_dir(folder)
        .expect("the cases are there")
        .flatten()
    {
        let case: Value =
            serde_json::from_slice(&std::fs::read(entry.path()).expect("readable")).expect("JSON");
        let event = json!({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}], "usage": case["payload"]});
        let mut decoder = ChatDecoder::new(Vec::new().into());
        decoder.push(format!("data: {event}\n\n").as_bytes(), |_| {});
        let Finished::Complete(response) = decoder.finish(|_| {}) else {
            panic!("a whole answer")
        };
        let usage = response.usage.expect("usage was reported");
        for key in ["input_total", "input_cached", "output_total"] {
            assert_eq!(json!(usage)[key], case["expect"][key], "{key}");
        }
        let price = |name: &str| case["prices_per_million"][name].as_f64().expect("a price");
        let prices = interpreter_messages::model::Prices {
            input: price("input"),
            cached: price("cached"),
            output: price("output"),
        };
        assert!(
            (usage.cost(&prices) - case["expect"]["cost"].as_f64().expect("a cost")).abs() < 1e-9
        );
    }
}

fn ok_body() -> Vec<u8> {
    b"data: {\"choices\":[{\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n".to_vec()
}

#[tokio::test]
async fn a_limited_rate_is_waited_for_and_the_same_bytes_are_sent_again() {
    let limited = Answer {
        status: 429,
        headers: vec![("retry-after".to_owned(), "1".to_owned())],
        body: br#"{"error":{"message":"slow down"}}"#.to_vec(),
        ..Answer::default()
    };
    let fine = Answer {
        status: 200,
        body: ok_body(),
        ..Answer::default()
    };
    let (url, mut seen) = serve(vec![limited, fine]).await;
    let screen = Screen::new();
    let began = Instant::now();
    let outcome = ask(
        start(http(url), &[], Duration::from_secs(5), 2),
        HttpClient::new(),
        screen.sink.clone(),
    )
    .await;
    assert!(matches!(outcome, StreamOutcome::Done(_)), "{outcome:?}");
    assert!(began.elapsed() >= Duration::from_secs(1));
    assert_eq!(seen.recv().await, seen.recv().await);
    let events = screen.events();
    assert!(
        events.iter().any(|event| matches!(
            event,
            Event::Retrying {
                attempt: 1,
                max: 2,
                ..
            }
        )),
        "{events:?}"
    );
}

#[tokio::test]
async fn a_refused_key_is_not_retried_and_not_shown() {
    let refused = Answer {
        status: 401,
        body: br#"{"error":{"message":"bad key sk-canary-1"}}"#.to_vec(),
        ..Answer::default()
    };
    let (url, _seen) = serve(vec![refused]).await;
    let outcome = ask(
        start(http(url), &[], Duration::from_secs(5), 4),
        HttpClient::new(),
        EventSink::new(),
    )
    .await;
    let StreamOutcome::Failed(failure) = outcome else {
        panic!("not refused")
    };
    assert!(!failure.retryable);
    let told = failure.error.to_string();
    assert!(
        told.contains("MOCK_KEY") && !told.contains("sk-canary"),
        "{told}"
    );
}

#[tokio::test]
async fn nobody_there_says_where_and_is_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("loopback has a free port");
    let url = format!("http://{}/v1", listener.local_addr().expect("it is bound"));
    drop(listener);
    let screen = Screen::new();
    let outcome = ask(
        start(http(url.clone()), &[], Duration::from_secs(5), 1),
        HttpClient::new(),
        screen.sink.clone(),
    )
    .await;
    let StreamOutcome::Failed(failure) = outcome else {
        panic!("somebody was there")
    };
    assert!(failure.error.message.contains(&url), "{}", failure.error);
    assert_eq!(screen.events().len(), 1, "one retry");
}

#[tokio::test]
async fn silence_ends_the_stream_and_what_was_shown_is_told() {
    let body = b"data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n".to_vec();
    let (url, _seen) = serve(vec![Answer {
        status: 200,
        body,
        hold_ms: 3000,
        ..Answer::default()
    }])
    .await;
    let outcome = ask(
        start(http(url), &[], Duration::from_millis(200), 3),
        HttpClient::new(),
        EventSink::new(),
    )
    .await;
    let StreamOutcome::Failed(failure) = outcome else {
        panic!("not failed")
    };
    assert!(
        failure.shown && failure.retryable && failure.partial_text == "half",
        "{failure:?}"
    );
}

#[tokio::test]
async fn a_document_instead_of_a_stream_is_an_answer_too() {
    let body = json!({"id": "x", "choices": [{"index": 0, "message": {"role": "assistant", "content": "whole"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1}});
    let pretty = serde_json::to_vec_pretty(&body).expect("JSON");
    for body in [body.to_string().into_bytes(), pretty] {
        let (url, _seen) = serve(vec![Answer {
            status: 200,
            body,
            ..Answer::default()
        }])
        .await;
        let outcome = ask(
            start(http(url), &[], Duration::from_secs(5), 0),
            HttpClient::new(),
            EventSink::new(),
        )
        .await;
        let StreamOutcome::Done(response) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(response.items, [ModelItem::Text("whole".to_owned())]);
    }
}

async fn replay(
    script: &Value,
    attempt: u32,
    retries: u32,
    idle: Duration,
) -> (StreamOutcome, Vec<Event>) {
    let folder = tempfile::tempdir().expect("a temp directory can be made");
    let path = folder.path().join("script.json");
    std::fs::write(&path, script.to_string()).expect("a file can be written");
    let screen = Screen::new();
    let mut start = start(Transport::Replay { script: path }, &["x"], idle, retries);
    start.stream.attempt = attempt;
    let outcome = ask(start, HttpClient::new(), screen.sink.clone()).await;
    (outcome, screen.events())
}

#[tokio::test(start_paused = true)]
async fn a_recording_plays_words_thoughts_calls_and_usage() {
    let script = json!({"responses": [{"reasoning": "hm", "text": "Ünïcode words", "calls": [{"name": "x", "arguments": {"a": 1}}],
        "usage": {"input": 10, "cached": 4, "output": 3}, "pace_ms": 5, "chunk_chars": 3}]});
    let (outcome, events) = replay(&script, 0, 0, Duration::from_secs(1)).await;
    let StreamOutcome::Done(response) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(texts(&events, DeltaKind::Text), "Ünïcode words");
    assert_eq!(response.items.len(), 3);
    assert_eq!(
        response
            .usage
            .map(|usage| (usage.input_total, usage.input_cached)),
        Some((10, 4))
    );
}

#[tokio::test(start_paused = true)]
async fn faults_of_a_recording_come_one_per_try() {
    let script = json!({"responses": [{"text": "fine in the end", "faults": [
        {"kind": "status", "status": 503}, {"kind": "stall", "after_chunks": 0}, {"kind": "broken_json", "after_chunks": 1}]}]});
    let (outcome, events) = replay(&script, 0, 4, Duration::from_secs(1)).await;
    assert!(
        matches!(&outcome, StreamOutcome::Done(response) if response.items == [ModelItem::Text("fine in the end".to_owned())]),
        "{outcome:?}"
    );
    assert_eq!(
        events
            .iter()
            .filter(|event| matches!(event, Event::Retrying { .. }))
            .count(),
        2
    );
    let cut = json!({"responses": [{"text": "a long enough text", "faults": [{"kind": "cut", "after_chunks": 1}]}]});
    let (outcome, _) = replay(&cut, 0, 4, Duration::from_secs(1)).await;
    assert!(
        matches!(&outcome, StreamOutcome::Failed(failure) if failure.shown && failure.retryable),
        "{outcome:?}"
    );
    let (outcome, _) = replay(&cut, 1, 4, Duration::from_secs(1)).await;
    assert!(matches!(outcome, StreamOutcome::Done(_)), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_recording_that_is_over_or_broken_says_so() {
    let (outcome, _) = replay(&json!({"responses": []}), 0, 4, Duration::from_secs(1)).await;
    assert!(
        matches!(&outcome, StreamOutcome::Failed(failure) if failure.error.message.contains("no more answers")),
        "{outcome:?}"
    );
    let (outcome, _) = replay(&json!({"responses": 3}), 0, 4, Duration::from_secs(1)).await;
    assert!(
        matches!(&outcome, StreamOutcome::Failed(failure) if failure.error.message.contains("script.json:1")),
        "{outcome:?}"
    );
}

mod actor {
    use tokio::sync::mpsc;

    use super::*;

    struct Probe;

    impl Actor for Probe {
        type Msg = SessionMsg;
        type State = mpsc::UnboundedSender<SessionMsg>;
        type Arguments = mpsc::UnboundedSender<SessionMsg>;

        async fn pre_start(
            &self,
            _: ActorRef<SessionMsg>,
            to: Self::Arguments,
        ) -> Result<Self::State, ActorProcessingErr> {
            Ok(to)
        }

        async fn handle(
            &self,
            _: ActorRef<SessionMsg>,
            message: SessionMsg,
            to: &mut Self::State,
        ) -> Result<(), ActorProcessingErr> {
            to.send(message).map_err(Into::into)
        }
    }

    #[tokio::test]
    async fn it_reports_once_and_stops_and_a_kill_closes_the_connection() {
        let fine = Answer {
            status: 200,
            body: ok_body(),
            ..Answer::default()
        };
        let stuck = Answer {
            status: 200,
            body: b": wait\n\n".to_vec(),
            hold_ms: 60_000,
            ..Answer::default()
        };
        let (url, _seen) = serve(vec![fine, stuck]).await;
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let (session, _) = Actor::spawn(None, Probe, sender)
            .await
            .expect("the probe starts");
        let args = |fault| ModelStreamArgs {
            start: start(http(url.clone()), &[], Duration::from_secs(30), 0),
            session: Peer::to(session.clone()),
            sink: EventSink::new(),
            http: HttpClient::new(),
            fault,
        };
        let (_, ended) = Actor::spawn(None, ModelStream, args(FaultSwitch::default()))
            .await
            .expect("the stream starts");
        assert!(matches!(
            receiver.recv().await,
            Some(SessionMsg::Stream {
                outcome: StreamOutcome::Done(_),
                ..
            })
        ));
        ended.await.expect("it stops");
        let (stream, ended) = Actor::spawn(None, ModelStream, args(FaultSwitch::default()))
            .await
            .expect("the stream starts");
        stream.kill();
        ended.await.expect("it is gone");
        assert!(receiver.try_recv().is_err());
        session.stop(None);
    }
}
