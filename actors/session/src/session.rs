//! The Session actor: appends what the machine decides, and carries out its effects once that is committed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use interpreter_messages::approval::ApprovalMsg;
use interpreter_messages::harness::HarnessMsg;
use interpreter_messages::journal::{Batch, BatchId, Committed, JournalMsg, Record, Writer};
use interpreter_messages::session::{
    SessionMsg, SessionSettings, SessionSupervisorMsg, SessionView, Who,
};
use interpreter_messages::stream::StartStream;
use interpreter_messages::tool::{RunCall, ToolPoolMsg};
use interpreter_messages::{EventSink, FaultSwitch, Peer, Seq};
use jiff::Timestamp;
use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::core::events::Narrator;
use crate::core::{Conversation, Effect, Event, Machine, Output};

/// How long the journal may take to give the past.
const LOAD_BUDGET: Duration = Duration::from_secs(30);

/// What a Session is started with.
pub struct SessionArgs {
    /// The settings.
    pub settings: Arc<SessionSettings>,
    /// Its journal.
    pub journal: Peer<JournalMsg>,
    /// Its keeper of questions.
    pub approval: Peer<ApprovalMsg>,
    /// Its runner of tools.
    pub tools: Peer<ToolPoolMsg>,
    /// Its harness.
    pub harness: Peer<HarnessMsg>,
    /// Starts its streams.
    pub supervisor: Peer<SessionSupervisorMsg>,
    /// Its events.
    pub sink: EventSink,
    /// Crashes of the driver in the open turn so far.
    pub crashes: u32,
    /// Whether this is the first start over a journal of an earlier process.
    pub resumed: bool,
    /// The clock.
    pub now: fn() -> Timestamp,
    /// Fault injection.
    pub fault: FaultSwitch,
}

/// Drives the turns of one conversation.
///
/// Owns nothing outside: its state is the fold of its journal. Supervised by SessionSupervisor, permanent. A crash costs
/// a replay; running tools, open questions and the journal are siblings and go on. On restart it publishes what is not
/// out yet, asks ToolPool what it still knows, and goes on with the turn. It ends with its supervisor's order.
pub struct Session;

/// A batch that is on its way into the journal.
struct InFlight {
    batch: Batch,
    effects: Vec<Effect>,
}

/// The driver's state.
pub struct SessionState {
    args: SessionArgs,
    machine: Machine,
    narrator: Narrator,
    in_flight: VecDeque<InFlight>,
    next_batch: u64,
    shaped: usize,
}

impl Actor for Session {
    type Msg = SessionMsg;
    type State = SessionState;
    type Arguments = SessionArgs;

    async fn pre_start(
        &self,
        _: ActorRef<SessionMsg>,
        args: SessionArgs,
    ) -> Result<SessionState, ActorProcessingErr> {
        let loaded = args
            .journal
            .call(JournalMsg::Load, LOAD_BUDGET)
            .await
            .map_err(|error| format!("the journal gives no past: {error}"))??;
        if args.resumed
            && let Some(last) = loaded.records.last()
        {
            args.sink.skip_to(last.seq);
        }
        if args.resumed {
            for text in &loaded.warnings {
                args.sink
                    .publish(interpreter_messages::ui::Event::Notice { text: text.clone() });
            }
        }
        let mut narrator = Narrator::default();
        let mut conversation = Conversation::default();
        for record in &loaded.records {
            publish(&args.sink, &mut narrator, record, &conversation);
            conversation.apply(record);
        }
        let seen = conversation
            .seen
            .iter()
            .map(|(path, hash)| (path.clone(), hash.clone()))
            .collect();
        // A pool that is down starts empty and is told when it asks again.
        let _ = args.tools.cast(ToolPoolMsg::Seen(seen));
        let machine = Machine::new(Arc::clone(&args.settings), conversation);
        let mut state = SessionState {
            machine,
            narrator,
            in_flight: VecDeque::new(),
            next_batch: loaded.session_batch + 1,
            shaped: 0,
            args,
        };
        let (resumed, crashes) = (state.args.resumed, state.args.crashes);
        state.step(Event::Started { resumed, crashes });
        Ok(state)
    }

    async fn handle(
        &self,
        _: ActorRef<SessionMsg>,
        message: SessionMsg,
        state: &mut SessionState,
    ) -> Result<(), ActorProcessingErr> {
        state.args.fault.hit(point(&message));
        match message {
            SessionMsg::Submit(submit) => {
                state.resend();
                state.step(Event::Submit(submit));
            }
            SessionMsg::Interrupt { now, by } => state.step(Event::Interrupt { now, by }),
            SessionMsg::Harness(event) => state.step(Event::Harness(event)),
            SessionMsg::Stream { stream, outcome } => state.step(Event::Stream { stream, outcome }),
            SessionMsg::Tool(event) => state.step(Event::Tool(event)),
            SessionMsg::ToolReport(report) => state.step(Event::ToolReport(report)),
            SessionMsg::Committed(committed) => state.committed(&committed),
            SessionMsg::AppendFailed { error } => state.step(Event::AppendFailed { error }),
            SessionMsg::AbortTurn { turn } => {
                if turn == state.machine.conversation.turn {
                    state.step(Event::Interrupt {
                        now: false,
                        by: "user",
                    });
                }
            }
            SessionMsg::PeerRestarted(Who::Journal) => state.resend(),
            SessionMsg::PeerRestarted(Who::ToolPool) => state.tools_restarted(),
            SessionMsg::PeerRestarted(Who::Harness) => {
                state.shaped = 0;
                state.step(Event::HarnessRestarted);
            }
            SessionMsg::PeerRestarted(Who::Session) => state.reachable(),
            SessionMsg::PeerRestarted(Who::Approval) => {}
            SessionMsg::View(reply) => drop(reply.send(state.view())),
        }
        Ok(())
    }
}

/// The fault point of a message.
const fn point(message: &SessionMsg) -> &'static str {
    match message {
        SessionMsg::Submit(_) => "session.submit",
        SessionMsg::Interrupt { .. } => "session.interrupt",
        SessionMsg::Harness(_) => "session.harness",
        SessionMsg::Stream { .. } => "session.stream",
        SessionMsg::Tool(_) => "session.tool",
        SessionMsg::ToolReport(_) => "session.tool_report",
        SessionMsg::Committed(_) => "session.committed",
        SessionMsg::AppendFailed { .. } => "session.append_failed",
        SessionMsg::AbortTurn { .. } => "session.abort_turn",
        SessionMsg::PeerRestarted(_) => "session.peer_restarted",
        SessionMsg::View(_) => "session.view",
    }
}

fn publish(sink: &EventSink, narrator: &mut Narrator, record: &Arc<Record>, before: &Conversation) {
    let events = narrator.events(record, before);
    sink.publish_record(record.seq, events);
}

impl SessionState {
    fn step(&mut self, event: Event) {
        let output = self.machine.step(event);
        self.carry_out(output);
    }

    fn carry_out(&mut self, output: Output) {
        if output.entries.is_empty() {
            return self.run(output.effects);
        }
        let id = BatchId {
            writer: Writer::Session,
            number: self.next_batch,
        };
        self.next_batch += 1;
        let batch = Batch {
            id,
            at: (self.args.now)(),
            entries: output.entries,
            sync: output.sync,
        };
        // A journal that is down gets it when it is back.
        let _ = self.args.journal.cast(JournalMsg::Append(batch.clone()));
        self.in_flight.push_back(InFlight {
            batch,
            effects: output.effects,
        });
    }

    /// Sends every batch again that has no answer; the journal knows those that it has.
    fn resend(&self) {
        for flight in &self.in_flight {
            let _ = self
                .args
                .journal
                .cast(JournalMsg::Append(flight.batch.clone()));
        }
    }

    fn committed(&mut self, committed: &Committed) {
        match self.in_flight.front() {
            Some(flight) if flight.batch.id == committed.id => {}
            // Answered twice, after it was sent twice.
            _ => return,
        }
        let Some(flight) = self.in_flight.pop_front() else {
            return;
        };
        for record in &committed.records {
            publish(
                &self.args.sink,
                &mut self.narrator,
                record,
                &self.machine.conversation,
            );
            self.machine.fold(record);
        }
        self.run(flight.effects);
        self.step(Event::Committed);
        if self.args.fault.is_armed() {
            self.args
                .fault
                .hit(&format!("session.committed.{}", committed.id.number));
        }
    }

    /// What was sent while this actor started may have been answered to an empty peer.
    fn reachable(&mut self) {
        self.resend();
        if matches!(self.machine.phase, crate::core::Phase::Recovering) {
            self.act(Effect::AskReport);
        }
    }

    fn tools_restarted(&mut self) {
        let seen = self
            .machine
            .conversation
            .seen
            .iter()
            .map(|(path, hash)| (path.clone(), hash.clone()))
            .collect();
        let _ = self.args.tools.cast(ToolPoolMsg::Seen(seen));
        let _ = self.args.tools.cast(ToolPoolMsg::Report);
    }

    fn run(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.act(effect);
        }
    }

    /// Sends an effect. A peer that is down is asked again when its restart is told, or its loss is handled there.
    fn act(&mut self, effect: Effect) {
        let args = &self.args;
        match effect {
            Effect::Gather(turn) => drop(args.harness.cast(HarnessMsg::Gather { turn })),
            Effect::Shape { stream, from } => {
                let from = from.min(self.shaped);
                let history = self.machine.conversation.history[from..].to_vec();
                self.shaped = self.machine.conversation.history.len();
                let model = Arc::clone(&args.settings.model.profile);
                drop(args.harness.cast(HarnessMsg::Shape {
                    stream,
                    from,
                    history,
                    model,
                }));
            }
            Effect::Stream {
                stream,
                request,
                delay,
            } => {
                let start = StartStream {
                    stream,
                    request,
                    model: args.settings.model.clone(),
                    delay,
                };
                drop(
                    args.supervisor
                        .cast(SessionSupervisorMsg::StartStream(start)),
                );
            }
            Effect::StopStream(stream) => drop(
                args.supervisor
                    .cast(SessionSupervisorMsg::StopStream { stream }),
            ),
            Effect::Absorb { stream, response } => {
                let used = Arc::clone(&self.machine.conversation.calls);
                drop(args.harness.cast(HarnessMsg::Absorb {
                    stream,
                    response,
                    used,
                }));
            }
            Effect::Run {
                turn,
                call,
                operation,
            } => {
                let run = RunCall {
                    turn,
                    call,
                    operation,
                    cwd: args.settings.cwd.clone(),
                };
                drop(args.tools.cast(ToolPoolMsg::Run(run)));
            }
            Effect::Proceed(call) => drop(args.tools.cast(ToolPoolMsg::Proceed { call })),
            Effect::Acknowledge(call) => drop(args.tools.cast(ToolPoolMsg::Acknowledge { call })),
            Effect::CancelTurn { turn, now } => {
                drop(args.tools.cast(ToolPoolMsg::CancelTurn { turn, now }));
                drop(args.approval.cast(ApprovalMsg::Withdraw { turn }));
            }
            Effect::AskReport => drop(args.tools.cast(ToolPoolMsg::Report)),
            Effect::Publish(event) => args.sink.publish(event),
        }
    }

    fn view(&self) -> SessionView {
        let conversation = &self.machine.conversation;
        SessionView {
            id: self.args.settings.meta.id,
            phase: self.machine.phase.name().to_owned(),
            turn: conversation.turn,
            seq: conversation.seq.unwrap_or(Seq(0)),
            history: conversation.history.len(),
            usage: conversation.usage,
            last_end: conversation.last_end.clone(),
            queued: self.machine.queued(),
        }
    }
}
