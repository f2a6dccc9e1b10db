//! What the tests share: a scripted conversation, any entry at all, and disks that fail.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use interpreter_messages::approval::{ApprovalRequest, DecidedBy, Decision, Subject};
use interpreter_messages::journal::{
    Batch, BatchId, Entry, ErrorClass, Finish, Part, ResponseEnd, SessionMeta, TurnContext,
    TurnEnd, TurnError, UserInput, Writer,
};
use interpreter_messages::model::Usage;
use interpreter_messages::policy::{ApprovalPolicy, SandboxMode};
use interpreter_messages::tool::{
    ChangeKind, Cut, Effects, Exec, ExecOutput, ExitStatus, FileChange, Intent, InvalidCall,
    Meaning, Operation, Plan, PlanStep, StepStatus, TextOutput, ToolCall, ToolOutcome, ToolOutput,
    Write,
};
use interpreter_messages::{
    ApprovalId, CallId, ClientId, ProcessId, RequestNo, SessionId, StreamId, TurnId, UiId,
};
use jiff::Timestamp;
use proptest::prelude::*;

use crate::store::medium::Medium;

pub(crate) const STARTED: &str = "2026-12-01T10:20:30.123456789Z";

pub(crate) fn at() -> Timestamp {
    STARTED.parse().expect("a time")
}

pub(crate) fn meta() -> SessionMeta {
    SessionMeta {
        id: "0193815e-3f00-7000-8000-00000000abcd"
            .parse()
            .expect("an id"),
        started: at(),
        cwd: PathBuf::from("/home/ada/project"),
        source: "exec".to_owned(),
        version: "0.1.0".to_owned(),
        provider: "ollama".to_owned(),
        harness: "native".to_owned(),
        forked_from: None,
        parent: None,
    }
}

pub(crate) fn context(turn: u64) -> TurnContext {
    TurnContext {
        turn: TurnId(turn),
        cwd: PathBuf::from("/home/ada/project"),
        model: "m1".to_owned(),
        provider: "ollama".to_owned(),
        harness: "native".to_owned(),
        sandbox: SandboxMode::WorkspaceWrite,
        network: false,
        approval: ApprovalPolicy::OnRequest,
        effort: None,
    }
}

pub(crate) fn batch(number: u64, entries: Vec<Entry>) -> Batch {
    Batch {
        id: BatchId {
            writer: Writer::Session,
            number,
        },
        at: at(),
        entries,
        sync: false,
    }
}

fn stream(turn: u64, request: u64) -> StreamId {
    StreamId {
        turn: TurnId(turn),
        request: RequestNo(request),
        attempt: 0,
    }
}

/// The batches of a turn with a command: 6 of Session, from `number` on.
pub(crate) fn turn(turn: u64, number: u64, request: u64) -> Vec<Batch> {
    let (id, call) = (TurnId(turn), CallId(format!("call-{turn}")));
    let output = ExecOutput {
        text: format!("line one of {turn}\nline two\n"),
        total_bytes: 30,
        exit: Some(ExitStatus::Code(0)),
        ..ExecOutput::default()
    };
    let usage = Usage {
        input_total: 100,
        output_total: 10,
        ..Usage::default()
    };
    let ended = |request, finish| {
        Entry::ResponseEnded(ResponseEnd {
            stream: stream(turn, request),
            finish,
            usage: Some(usage),
        })
    };
    let groups = vec![
        vec![
            Entry::TurnStarted(context(turn)),
            Entry::UserInput(UserInput {
                turn: id,
                client: ClientId(format!("c{turn}")),
                parts: vec![Part::Text {
                    text: format!("do thing {turn}, \u{fc}ber alles"),
                }],
            }),
        ],
        vec![Entry::RequestStarted {
            stream: stream(turn, request),
        }],
        vec![
            Entry::AssistantText {
                turn: id,
                text: "I will run it".to_owned(),
            },
            Entry::ToolCall {
                turn: id,
                call: exec_call(&call, "echo hi"),
            },
            ended(request, Finish::ToolCalls),
        ],
        vec![Entry::ToolIntent {
            turn: id,
            call: call.clone(),
            intent: Intent::Process {
                argv: vec!["/bin/bash".into(), "-c".into(), "echo hi".into()],
                cwd: PathBuf::from("/home/ada/project"),
                escalated: false,
            },
        }],
        vec![Entry::ToolOutcome {
            turn: id,
            call,
            outcome: ToolOutcome::Ok {
                output: ToolOutput::Exec(output),
            },
        }],
        vec![
            Entry::AssistantText {
                turn: id,
                text: format!("done with {turn}"),
            },
            ended(request + 1, Finish::Stop),
            Entry::TurnEnded {
                turn: id,
                end: TurnEnd::Completed,
            },
        ],
    ];
    (number..)
        .zip(groups)
        .map(|(number, entries)| batch(number, entries))
        .collect()
}

/// A session of some turns, beginning with its meta record.
pub(crate) fn session(turns: u64) -> Vec<Batch> {
    let mut batches = vec![batch(1, vec![Entry::Meta(meta())])];
    for n in 1..=turns {
        batches.extend(turn(n, batches.len() as u64 + 1, (n - 1) * 2));
    }
    batches
}

fn exec_call(id: &CallId, command: &str) -> ToolCall {
    ToolCall {
        id: id.clone(),
        name: "exec".to_owned(),
        arguments: format!("{{\"command\":{command:?}}}"),
        meaning: Meaning::Run(Operation::Exec(exec(command))),
        repaired: None,
    }
}

fn exec(command: &str) -> Exec {
    Exec {
        command: command.to_owned(),
        workdir: None,
        shell: None,
        login: false,
        tty: false,
        yield_ms: None,
        timeout_ms: None,
        max_output_tokens: None,
        escalate: false,
        justification: None,
    }
}

/// Any text: also with line ends, controls, quotes, and long ones.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-z\\n\"\\\\\u{2028}\u{1b}]{0,200}",
        Just("data:image/png;base64,".to_owned()),
    ]
}

fn paths() -> impl Strategy<Value = PathBuf> {
    "/[a-z\\n \u{e9}]{0,12}".prop_map(PathBuf::from)
}

fn changes() -> impl Strategy<Value = Vec<FileChange>> {
    let change =
        (paths(), text(), any::<Option<bool>>()).prop_map(|(path, diff, moved)| FileChange {
            kind: match moved {
                None => ChangeKind::Add,
                Some(true) => ChangeKind::Update,
                Some(false) => ChangeKind::Delete,
            },
            moved_to: moved.filter(|moved| *moved).map(|_| path.clone()),
            path,
            before: moved.map(|_| "ab12".to_owned()),
            after: None,
            diff,
        });
    prop::collection::vec(change, 0..3)
}

fn exec_output() -> impl Strategy<Value = ExecOutput> {
    (text(), any::<u64>(), any::<Option<i32>>()).prop_map(|(text, bytes, code)| ExecOutput {
        text,
        total_bytes: bytes,
        total_lines: 3,
        cut: (bytes % 2 == 0).then_some(Cut { at: 0, bytes }),
        wall_ms: bytes / 7,
        exit: code.map(|code| {
            if code < 0 {
                ExitStatus::Signal(code)
            } else {
                ExitStatus::Code(code)
            }
        }),
        process: code.is_none().then_some(ProcessId(4)),
        denial: code.map(|_| "network".to_owned()),
    })
}

fn outcomes() -> impl Strategy<Value = ToolOutcome> {
    let ok = |output| ToolOutcome::Ok { output };
    prop_oneof![
        exec_output().prop_map(move |output| ok(ToolOutput::Exec(output))),
        (paths(), text()).prop_map(move |(path, text)| ok(ToolOutput::Text(TextOutput {
            path,
            hash: "ff".to_owned(),
            text,
            first_line: 1,
            total_lines: 2,
            long_lines: 0,
            lossy: false,
        }))),
        changes().prop_map(move |changes| ok(ToolOutput::Changed { changes })),
        (prop::collection::vec(text(), 0..4), any::<u64>())
            .prop_map(move |(lines, left_out)| ok(ToolOutput::Lines { lines, left_out })),
        text().prop_map(move |step| ok(ToolOutput::Plan {
            plan: Plan {
                explanation: Some(step.clone()),
                steps: vec![PlanStep {
                    step,
                    status: StepStatus::InProgress,
                }],
            },
        })),
        (paths(), text()).prop_map(move |(path, data)| ok(ToolOutput::Image {
            path,
            mime: "image/png".to_owned(),
            data: data.into(),
        })),
        text().prop_map(|error| ToolOutcome::Failed { error }),
        text().prop_map(|reason| ToolOutcome::Denied { reason }),
        (any::<u64>(), exec_output())
            .prop_map(|(after_ms, output)| ToolOutcome::TimedOut { after_ms, output }),
        (text(), prop::option::of(exec_output()))
            .prop_map(|(reason, output)| ToolOutcome::Aborted { reason, output }),
        (text(), text()).prop_map(|(cause, tail)| ToolOutcome::Crashed {
            effects: Effects::Unknown,
            cause,
            tail,
        }),
    ]
}

fn calls() -> impl Strategy<Value = ToolCall> {
    let meaning = prop_oneof![
        text().prop_map(|command| (
            serde_json::json!({"c/~": [command]}),
            Meaning::Run(Operation::Exec(exec(&command)))
        )),
        text().prop_map(|content| (
            serde_json::json!({"content": content, "path": "p"}),
            Meaning::Run(Operation::Write(Write {
                path: PathBuf::from("p"),
                content,
            }))
        )),
        text().prop_map(|raw| (
            serde_json::json!({}),
            Meaning::Invalid(InvalidCall::BadArguments {
                error: "no".to_owned(),
                raw,
            })
        )),
    ];
    (meaning, any::<Option<bool>>()).prop_map(|((arguments, meaning), repaired)| ToolCall {
        id: CallId::new("call"),
        name: "tool".to_owned(),
        arguments: arguments.to_string(),
        meaning,
        repaired: repaired.map(|_| "near JSON".to_owned()),
    })
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let part = prop_oneof![
        text().prop_map(|text| Part::Text { text }),
        (text(), text(), text()).prop_map(|(name, mime, data)| Part::Image {
            name,
            mime,
            data: data.into(),
        }),
    ];
    prop::collection::vec(part, 1..4)
}

fn approvals() -> impl Strategy<Value = Entry> {
    let subject = prop_oneof![
        (text(), paths(), any::<bool>()).prop_map(|(command, cwd, escalated)| Subject::Command {
            command,
            cwd,
            escalated,
        }),
        (changes(), any::<bool>())
            .prop_map(|(changes, escalated)| Subject::Files { changes, escalated }),
    ];
    prop_oneof![
        (subject, prop::option::of(text())).prop_map(|(subject, reason)| {
            Entry::ApprovalRequested(ApprovalRequest {
                id: ApprovalId::new("call/1"),
                call: CallId::new("call"),
                turn: TurnId(1),
                subject,
                reason,
                origin: vec![SessionId(uuid::Uuid::nil())],
            })
        }),
        (
            prop::option::of(text()),
            prop::collection::vec(text(), 0..3)
        )
            .prop_map(|(text, grants)| Entry::ApprovalResolved {
                id: ApprovalId::new("call/1"),
                decision: match text {
                    None => Decision::ApproveForSession,
                    text => Decision::Deny { text },
                },
                by: DecidedBy::Ui(UiId(3)),
                grants,
            }),
    ]
}

/// Any entry that a session can hold.
pub(crate) fn entries() -> impl Strategy<Value = Entry> {
    let turn = TurnId(7);
    let usage = any::<Option<u32>>().prop_map(|n| {
        n.map(|n| Usage {
            input_total: u64::from(n),
            output_total: 3,
            ..Usage::default()
        })
    });
    prop_oneof![
        text().prop_map(|source| Entry::Meta(SessionMeta { source, ..meta() })),
        paths().prop_map(|cwd| Entry::TurnStarted(TurnContext { cwd, ..context(7) })),
        (text(), parts()).prop_map(move |(client, parts)| Entry::UserInput(UserInput {
            turn,
            client: ClientId(client),
            parts,
        })),
        Just(Entry::RequestStarted {
            stream: stream(7, 1)
        }),
        (text(), any::<bool>()).prop_map(move |(text, opaque)| Entry::Reasoning {
            turn,
            text,
            opaque: opaque.then(|| serde_json::json!({"signature": "x", "n": [1, null]})),
        }),
        text().prop_map(move |text| Entry::AssistantText { turn, text }),
        calls().prop_map(move |call| Entry::ToolCall { turn, call }),
        (usage, text()).prop_map(|(usage, other)| Entry::ResponseEnded(ResponseEnd {
            stream: stream(7, 1),
            finish: Finish::Other(other),
            usage,
        })),
        changes().prop_map(move |changes| Entry::ToolIntent {
            turn,
            call: CallId::new("call"),
            intent: Intent::Files { changes },
        }),
        outcomes().prop_map(move |outcome| Entry::ToolOutcome {
            turn,
            call: CallId::new("call"),
            outcome,
        }),
        approvals(),
        text().prop_map(move |message| Entry::TurnEnded {
            turn,
            end: TurnEnd::Failed(TurnError {
                class: ErrorClass::Server,
                message,
                hint: None,
            }),
        }),
        text().prop_map(move |by| Entry::TurnEnded {
            turn,
            end: TurnEnd::Interrupted { by },
        }),
        text().prop_map(|reason| Entry::Rebase {
            reason,
            harness: "minimal".to_owned(),
            model: "m2".to_owned(),
        }),
        text().prop_map(|text| Entry::Notice { text }),
        text().prop_map(|text| Entry::Foreign {
            line: serde_json::json!({"type": "world_state", "payload": {"z": text, "a": 1}}),
        }),
    ]
}

/// What a [`FaultyDisk`] does.
#[derive(Debug, Default)]
pub(crate) struct DiskState {
    pub bytes: Vec<u8>,
    /// Bytes that fit.
    pub room: Option<usize>,
    pub truncate_fails: bool,
    pub sync_fails: bool,
    pub panics: bool,
    pub syncs: usize,
}

/// A disk that can be full, refuse to be cut, or panic half-way.
#[derive(Debug, Clone, Default)]
pub(crate) struct FaultyDisk(pub Arc<Mutex<DiskState>>);

impl FaultyDisk {
    pub(crate) fn set(&self, change: impl FnOnce(&mut DiskState)) {
        change(&mut self.0.lock().expect("no panic while it is held"));
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0
            .lock()
            .expect("no panic while it is held")
            .bytes
            .clone()
    }

    pub(crate) fn syncs(&self) -> usize {
        self.0.lock().expect("no panic while it is held").syncs
    }
}

impl Medium for FaultyDisk {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let panics = {
            let mut disk = self.0.lock().expect("no panic while it is held");
            let room = disk.room.map_or(usize::MAX, |room| room - disk.bytes.len());
            let fits = if disk.panics {
                bytes.len() / 2
            } else {
                bytes.len().min(room)
            };
            disk.bytes.extend_from_slice(&bytes[..fits]);
            if !disk.panics && fits < bytes.len() {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            disk.panics
        };
        assert!(!panics, "a panic in the middle of a write");
        Ok(())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        let mut disk = self.0.lock().expect("no panic while it is held");
        if disk.truncate_fails {
            return Err(io::Error::other("cannot cut"));
        }
        disk.bytes.truncate(usize::try_from(length).expect("small"));
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut disk = self.0.lock().expect("no panic while it is held");
        disk.syncs += 1;
        if disk.sync_fails {
            return Err(io::Error::other("cannot sync"));
        }
        Ok(())
    }
}
