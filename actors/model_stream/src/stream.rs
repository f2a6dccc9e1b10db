//! The ModelStream actor: owns the task of one request.

use std::time::Duration;

use bytes::Bytes;
use interpreter_messages::journal::{ErrorClass, TurnError};
use interpreter_messages::model::{HttpTransport, Transport};
use interpreter_messages::session::SessionMsg;
use interpreter_messages::stream::{ModelStreamMsg, StartStream, StreamFailure, StreamOutcome};
use interpreter_messages::ui::{DeltaKind, Event};
use interpreter_messages::{EventSink, FaultSwitch, ItemId, Peer};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::failure::{Asked, Failure};
use crate::http::{self, HttpClient};
use crate::replay::{self, Tape};
use crate::retry;
use crate::wire::chat::{ChatDecoder, Delta, Finished};

/// After the end of an answer the server may take this long to close it, so that the connection can be used again.
const TRAILER: Duration = Duration::from_millis(50);

/// What a ModelStream is started with.
pub struct ModelStreamArgs {
    /// The request, and whom to ask.
    pub start: StartStream,
    /// Gets the outcome.
    pub session: Peer<SessionMsg>,
    /// Gets the deltas.
    pub sink: EventSink,
    /// Connections.
    pub http: HttpClient,
    /// Fault injection.
    pub fault: FaultSwitch,
}

/// One model request.
///
/// Owns the task, and through it the connection: both end with this actor, however it ends. Supervised by
/// SessionSupervisor, temporary; a crash is told to Session, which asks again with the same bytes. It sends its outcome
/// once and stops; should Session be down at that moment, the outcome is lost and Session asks again when it is back.
pub struct ModelStream;

/// The guard of the task.
pub struct ModelStreamState {
    start: StartStream,
    session: Peer<SessionMsg>,
    fault: FaultSwitch,
    _task: TaskGuard,
}

struct TaskGuard(AbortHandle);

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Actor for ModelStream {
    type Msg = ModelStreamMsg;
    type State = ModelStreamState;
    type Arguments = ModelStreamArgs;

    async fn pre_start(
        &self,
        myself: ActorRef<ModelStreamMsg>,
        args: ModelStreamArgs,
    ) -> Result<ModelStreamState, ActorProcessingErr> {
        args.fault.hit("model_stream.start");
        let work = tokio::spawn(ask(args.start.clone(), args.http, args.sink));
        let guard = TaskGuard(work.abort_handle());
        tokio::spawn(async move {
            let outcome = match work.await {
                Ok(outcome) => outcome,
                Err(error) if error.is_panic() => StreamOutcome::Failed(crashed(&error)),
                Err(_) => return,
            };
            // The actor may be gone: then nobody waits for the outcome.
            let _ = myself.cast(ModelStreamMsg::Ended(outcome));
        });
        Ok(ModelStreamState {
            start: args.start,
            session: args.session,
            fault: args.fault,
            _task: guard,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<ModelStreamMsg>,
        message: ModelStreamMsg,
        state: &mut ModelStreamState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ModelStreamMsg::Ended(outcome) => {
                state.fault.hit("model_stream.ended");
                let stream = state.start.stream;
                // A Session that is down asks again when it is back.
                let _ = state.session.cast(SessionMsg::Stream { stream, outcome });
                myself.stop(None);
            }
        }
        Ok(())
    }
}

fn crashed(error: &tokio::task::JoinError) -> StreamFailure {
    StreamFailure {
        error: TurnError {
            class: ErrorClass::Runtime,
            message: format!("the reader of the model's answer crashed: {error}"),
            hint: None,
        },
        retryable: true,
        shown: true,
        retry_after: None,
        usage: None,
        partial_text: String::new(),
    }
}

/// Where the bytes come from.
enum Body {
    Http(reqwest::Response),
    Tape(Tape),
}

impl Body {
    async fn next(&mut self) -> Result<Option<Bytes>, String> {
        match self {
            Self::Http(response) => response
                .chunk()
                .await
                .map_err(|error| http::cause(&error).0),
            Self::Tape(tape) => tape.next().await,
        }
    }
}

async fn ask(start: StartStream, http: HttpClient, sink: EventSink) -> StreamOutcome {
    sleep(start.delay).await;
    let max = start.model.endpoint.request_max_retries;
    let mut retries = 0;
    loop {
        let failure = match open(&start, &http, retries).await {
            Ok(body) => match read(body, &start, &sink).await {
                Ok(outcome) => return outcome,
                Err(failure) => failure,
            },
            Err(failure) => failure,
        };
        let too_long = failure
            .retry_after
            .is_some_and(|wait| wait > retry::LONGEST_ASKED);
        if !failure.retryable || retries >= max || too_long {
            return StreamOutcome::Failed(given_up(failure, too_long));
        }
        retries += 1;
        let delay = retry::wait(retries, failure.retry_after, fastrand::f64() * 2.0 - 1.0);
        sink.publish(Event::Retrying {
            attempt: retries,
            max,
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            reason: failure.error.to_string(),
        });
        sleep(delay).await;
    }
}

/// No retry is left, or none would help. Session must not ask again what was asked often enough here.
fn given_up(failure: Failure, too_long: bool) -> StreamFailure {
    let mut error = failure.error;
    if let Some(wait) = failure.retry_after.filter(|_| too_long) {
        error.hint = Some(format!(
            "the provider asks to wait {} s; go on then",
            wait.as_secs()
        ));
    }
    StreamFailure {
        error,
        retryable: false,
        shown: false,
        retry_after: None,
        usage: None,
        partial_text: String::new(),
    }
}

async fn open(start: &StartStream, http: &HttpClient, retries: u32) -> Result<Body, Failure> {
    let endpoint = &start.model.endpoint;
    let idle = endpoint.idle_timeout;
    match &endpoint.transport {
        Transport::Http(transport) => {
            let asked = asked(start, transport);
            let response = timeout(idle, http.send(transport, &start.request, asked)).await;
            response.map_err(|_| silent(idle))?.map(Body::Http)
        }
        Transport::Replay { script } => {
            let attempt = start.stream.attempt + retries;
            replay::open(script, start.stream.request, attempt)
                .await
                .map(Body::Tape)
        }
    }
}

fn asked<'a>(start: &'a StartStream, transport: &'a HttpTransport) -> Asked<'a> {
    Asked {
        provider: &start.model.endpoint.provider,
        model: &start.model.profile.id,
        url: &transport.base_url,
        hint: transport.key_hint.as_deref(),
        with_key: transport.key.is_some(),
    }
}

fn silent(idle: Duration) -> Failure {
    let error = TurnError {
        class: ErrorClass::Transport,
        message: format!(
            "nothing came from the provider for {} s",
            idle.as_secs_f64()
        ),
        hint: Some("raise stream_idle_timeout_ms if the model thinks this long".to_owned()),
    };
    Failure {
        error,
        retryable: true,
        retry_after: None,
    }
}

/// Reads a body to its end. `Err`: it failed before any output, so it can be asked again here.
async fn read(
    mut body: Body,
    start: &StartStream,
    sink: &EventSink,
) -> Result<StreamOutcome, Failure> {
    let idle = start.model.endpoint.idle_timeout;
    let mut decoder = ChatDecoder::new(std::sync::Arc::clone(&start.request.tools));
    let mut shower = Shower::new(start, sink);
    let mut broken = None;
    while !decoder.is_done() {
        match timeout(idle, body.next()).await {
            Ok(Ok(Some(piece))) => {
                decoder.push(&piece, |delta| shower.take(delta));
                shower.flush();
            }
            Ok(Ok(None)) => break,
            Ok(Err(cause)) => {
                broken = Some(Failure {
                    error: TurnError {
                        class: ErrorClass::Transport,
                        message: format!("the stream broke: {cause}"),
                        hint: None,
                    },
                    retryable: true,
                    retry_after: None,
                });
                break;
            }
            Err(_) => {
                broken = Some(silent(idle));
                break;
            }
        }
    }
    if decoder.is_done() {
        // Lets the server close the answer; what comes after it does not matter.
        let _ = timeout(TRAILER, body.next()).await;
    }
    let shown = decoder.has_output();
    let finished = decoder.finish(|delta| shower.take(delta));
    shower.flush();
    match finished {
        Finished::Complete(response) => Ok(StreamOutcome::Done(response)),
        Finished::Failed {
            error,
            retryable,
            text,
            usage,
        } => {
            let (error, retryable) = broken.map_or((error, retryable), |broken| {
                (broken.error, broken.retryable)
            });
            if !shown {
                return Err(Failure {
                    error,
                    retryable,
                    retry_after: None,
                });
            }
            Ok(StreamOutcome::Failed(StreamFailure {
                error,
                retryable,
                shown,
                retry_after: None,
                usage,
                partial_text: text,
            }))
        }
    }
}

/// Gathers what one piece of the body shows, so that the sink is locked once per piece.
struct Shower<'a> {
    sink: &'a EventSink,
    text_item: ItemId,
    reasoning_item: ItemId,
    text: String,
    reasoning: String,
}

impl<'a> Shower<'a> {
    fn new(start: &StartStream, sink: &'a EventSink) -> Self {
        Self {
            sink,
            text_item: ItemId::text(start.stream, 0),
            reasoning_item: ItemId::reasoning(start.stream, 0),
            text: String::new(),
            reasoning: String::new(),
        }
    }

    fn take(&mut self, delta: Delta<'_>) {
        match delta {
            Delta::Text(text) => self.text.push_str(text),
            Delta::Reasoning(text) => self.reasoning.push_str(text),
        }
    }

    fn flush(&mut self) {
        self.sink
            .delta(&self.reasoning_item, DeltaKind::Reasoning, &self.reasoning);
        self.sink
            .delta(&self.text_item, DeltaKind::Text, &self.text);
        self.reasoning.clear();
        self.text.clear();
    }
}

#[cfg(test)]
mod tests;
