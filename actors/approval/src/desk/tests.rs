use interpreter_messages::SessionId;
use interpreter_messages::journal::{SessionMeta, TurnEnd};
use interpreter_messages::model::{Endpoint, ModelChoice, ModelProfile, Transport, WireApi};
use interpreter_messages::policy::{ApprovalPolicy, SandboxMode};
use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::policy::tests::{command, sandbox};

const TIMEOUT: Duration = Duration::from_secs(600);
const TUI: UiId = UiId(1);
const OTHER: UiId = UiId(2);

pub(crate) fn settings(on_no_ui: OnNoUi) -> Arc<SessionSettings> {
    let profile = ModelProfile {
        id: "m".to_owned(),
        provider: "p".to_owned(),
        provider_name: "P".to_owned(),
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
        provider: "p".to_owned(),
        transport: Transport::Replay {
            script: "none".into(),
        },
        request_max_retries: 0,
        stream_max_retries: 0,
        idle_timeout: Duration::from_secs(1),
    };
    Arc::new(SessionSettings {
        meta: SessionMeta {
            id: SessionId(uuid::Uuid::nil()),
            started: Timestamp::UNIX_EPOCH,
            cwd: "/work/project".into(),
            source: "exec".to_owned(),
            version: "0".to_owned(),
            provider: "p".to_owned(),
            harness: "native".to_owned(),
            forked_from: None,
            parent: None,
        },
        cwd: "/work/project".into(),
        model: ModelChoice {
            profile: Arc::new(profile),
            endpoint: Arc::new(endpoint),
        },
        harness: "native".to_owned(),
        sandbox: Arc::new(sandbox(SandboxMode::WorkspaceWrite)),
        approval: ApprovalPolicy::OnRequest,
        on_no_ui,
        approval_timeout: Some(TIMEOUT),
        max_requests_per_turn: 100,
        project_doc_max_bytes: 0,
        project_doc_fallback: Vec::new(),
        root_markers: Vec::new(),
    })
}

/// A request to leave the sandbox: always asked, unless granted.
pub(crate) fn question(n: u64, turn: u64, text: &str) -> ApprovalRequest {
    ApprovalRequest {
        id: ApprovalId(format!("call-{n}/1")),
        call: CallId(format!("call-{n}")),
        turn: TurnId(turn),
        subject: command(text, true),
        reason: None,
        origin: Vec::new(),
    }
}

fn desk(on_no_ui: OnNoUi) -> Desk {
    Desk::new(settings(on_no_ui), vec!["/usr/bin".into()])
}

fn with_ui(on_no_ui: OnNoUi) -> Desk {
    let mut desk = desk(on_no_ui);
    assert_eq!(desk.attached(TUI, true), []);
    desk
}

fn told(effects: &[Effect]) -> Vec<(&str, &Decision)> {
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Tell { id, decision, .. } => Some((id.as_str(), decision)),
            _ => None,
        })
        .collect()
}

fn entries(effects: &[Effect]) -> Vec<Entry> {
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Append(entry) => Some(entry.clone()),
            _ => None,
        })
        .collect()
}

fn reminder(effects: &[Effect]) -> (ApprovalId, u64, Duration) {
    effects
        .iter()
        .find_map(|effect| match effect {
            Effect::Remind {
                id,
                generation,
                after,
            } => Some((id.clone(), *generation, *after)),
            _ => None,
        })
        .expect("a reminder")
}

fn records(entries: Vec<Entry>) -> Vec<Arc<Record>> {
    (0..)
        .zip(entries)
        .map(|(seq, entry)| {
            Arc::new(Record {
                seq: interpreter_messages::Seq(seq),
                at: Timestamp::UNIX_EPOCH,
                entry,
            })
        })
        .collect()
}

#[test]
fn what_need_not_be_asked_is_answered_at_once_and_not_journalled() {
    let mut desk = with_ui(OnNoUi::Wait);
    let inside = ApprovalRequest {
        subject: command("make", false),
        ..question(1, 1, "")
    };
    let effects = desk.request(inside);
    assert_eq!(told(&effects), [("call-1/1", &Decision::Approve)]);
    assert_eq!(effects.len(), 1);
}

#[test]
fn a_question_is_journalled_published_shown_and_timed() {
    let mut desk = with_ui(OnNoUi::Wait);
    let effects = desk.request(question(1, 1, "make"));
    let asked = ApprovalRequest {
        reason: Some("it asks to run outside the sandbox".to_owned()),
        ..question(1, 1, "make")
    };
    assert_eq!(
        effects,
        [
            Effect::Append(Entry::ApprovalRequested(asked.clone())),
            Effect::Asked(asked.clone()),
            Effect::Show {
                request: asked.clone(),
                only: None
            },
            Effect::Remind {
                id: asked.id.clone(),
                generation: 1,
                after: TIMEOUT
            },
        ]
    );
    assert_eq!(desk.pending(), [asked]);
}

#[test]
fn the_models_own_reason_is_kept() {
    let mut desk = with_ui(OnNoUi::Wait);
    let asked = ApprovalRequest {
        reason: Some("needs the network".to_owned()),
        ..question(1, 1, "make")
    };
    desk.request(asked.clone());
    assert_eq!(desk.pending(), [asked]);
}

#[test]
fn the_first_answer_wins_and_later_ones_are_stale() {
    let mut desk = with_ui(OnNoUi::Wait);
    desk.attached(OTHER, true);
    let asked = question(1, 1, "make");
    desk.request(asked.clone());
    let (fate, effects) = desk.answer(&asked.id, Decision::Approve, OTHER);
    assert_eq!(fate, AnswerFate::Counted);
    assert_eq!(told(&effects), [("call-1/1", &Decision::Approve)]);
    assert!(effects.contains(&Effect::Settled {
        id: asked.id.clone(),
        decision: Decision::Approve,
        by: DecidedBy::Ui(OTHER),
    }));
    let late = desk.answer(&asked.id, Decision::Deny { text: None }, TUI);
    assert_eq!(late, (AnswerFate::Stale, Vec::new()));
    assert_eq!(desk.pending(), []);
}

#[test]
fn a_ui_that_cannot_answer_or_is_not_there_is_not_heard() {
    let mut desk = with_ui(OnNoUi::Wait);
    desk.attached(OTHER, false);
    let asked = question(1, 1, "make");
    desk.request(asked.clone());
    for ui in [OTHER, UiId(9)] {
        let answer = desk.answer(&asked.id, Decision::Approve, ui);
        assert_eq!(answer, (AnswerFate::Stale, Vec::new()));
    }
    assert_eq!(desk.pending().len(), 1);
}

#[test]
fn a_question_that_is_submitted_again_is_asked_once_and_answered_alike() {
    let mut desk = with_ui(OnNoUi::Wait);
    let asked = question(1, 1, "make");
    desk.request(asked.clone());
    assert_eq!(desk.request(asked.clone()), []);
    let denied = Decision::Deny {
        text: Some("use cargo".to_owned()),
    };
    desk.answer(&asked.id, denied.clone(), TUI);
    let again = desk.request(asked);
    assert_eq!(told(&again), [("call-1/1", &denied)]);
    assert_eq!(again.len(), 1);
}

#[test]
fn a_newcomer_is_shown_what_is_open_and_only_once() {
    let mut desk = desk(OnNoUi::Wait);
    let asked = question(1, 1, "make");
    desk.request(asked);
    assert_eq!(desk.attached(OTHER, false), []);
    let shown = desk.attached(TUI, true);
    assert!(
        matches!(shown.as_slice(), [Effect::Show { only: Some(TUI), request }] if request.id.as_str() == "call-1/1"),
        "{shown:?}"
    );
    assert_eq!(desk.attached(TUI, true), []);
}

#[test]
fn without_any_ui_exec_denies_at_once_and_tells_the_model_why() {
    let mut desk = desk(OnNoUi::Deny);
    let effects = desk.request(question(1, 1, "make"));
    let [(_, Decision::Deny { text: Some(text) })] = told(&effects)[..] else {
        panic!("{effects:?}");
    };
    assert!(text.starts_with("no one could be asked"), "{text}");
    assert_eq!(
        effects.len(),
        1,
        "nobody was asked, so nothing is journalled"
    );
}

#[test]
fn when_the_last_ui_that_can_answer_stays_away_what_is_open_is_denied() {
    let mut desk = with_ui(OnNoUi::Deny);
    desk.attached(OTHER, false);
    let asked = question(1, 1, "make");
    desk.request(asked.clone());
    assert_eq!(desk.detached(OTHER), []);
    let (id, generation, after) = reminder(&desk.detached(TUI));
    assert_eq!(after, NO_UI_GRACE);
    let effects = desk.expire(&id, generation);
    assert!(
        matches!(told(&effects)[..], [(_, Decision::Deny { text: Some(_) })]),
        "{effects:?}"
    );
    let entries = entries(&effects);
    assert!(
        matches!(
            &entries[..],
            [Entry::ApprovalResolved {
                by: DecidedBy::Policy,
                ..
            }]
        ),
        "{entries:?}"
    );
}

#[test]
fn a_ui_that_comes_back_in_time_can_still_answer() {
    let mut desk = with_ui(OnNoUi::Deny);
    let asked = question(1, 1, "make");
    desk.request(asked.clone());
    let (id, generation, _) = reminder(&desk.detached(TUI));
    let effects = desk.attached(OTHER, true);
    assert_eq!(reminder(&effects).2, TIMEOUT);
    assert_eq!(desk.expire(&id, generation), [], "the short timer is void");
    let (fate, _) = desk.answer(&asked.id, Decision::Approve, OTHER);
    assert_eq!(fate, AnswerFate::Counted);
}

#[test]
fn an_interactive_session_waits_for_a_ui() {
    let mut desk = with_ui(OnNoUi::Wait);
    desk.request(question(1, 1, "make"));
    assert_eq!(desk.detached(TUI), []);
    assert_eq!(desk.pending().len(), 1);
}

#[test]
fn a_question_times_out_once_and_by_its_own_timer_only() {
    let mut desk = with_ui(OnNoUi::Wait);
    let asked = question(1, 1, "make");
    let (id, generation, _) = reminder(&desk.request(asked));
    assert_eq!(desk.expire(&id, generation + 1), []);
    let effects = desk.expire(&id, generation);
    assert_eq!(told(&effects), [("call-1/1", &Decision::TimedOut)]);
    assert_eq!(desk.expire(&id, generation), []);
}

#[test]
fn a_grant_settles_what_it_covers_and_asks_no_more() {
    let mut desk = with_ui(OnNoUi::Wait);
    desk.request(question(1, 1, "make"));
    desk.request(question(2, 1, "make"));
    desk.request(question(3, 1, "make install"));
    let first = question(1, 1, "make").id;
    let (_, effects) = desk.answer(&first, Decision::ApproveForSession, TUI);
    assert_eq!(
        told(&effects),
        [
            ("call-1/1", &Decision::ApproveForSession),
            ("call-2/1", &Decision::Approve)
        ]
    );
    let Entry::ApprovalResolved { grants, .. } = &entries(&effects)[0] else {
        panic!("{effects:?}");
    };
    assert_eq!(grants.len(), 1);
    assert_eq!(desk.pending().len(), 1);
    assert_eq!(desk.request(question(4, 2, "make")).len(), 1);
}

#[test]
fn an_answer_can_end_the_turn_and_session_hears_of_it_first() {
    let mut desk = with_ui(OnNoUi::Wait);
    let asked = question(1, 7, "make");
    desk.request(asked.clone());
    let (_, effects) = desk.answer(&asked.id, Decision::AbortTurn, TUI);
    assert_eq!(effects[0], Effect::AbortTurn(TurnId(7)));
    assert_eq!(told(&effects), [("call-1/1", &Decision::AbortTurn)]);
    assert_eq!(desk.session_is_back(), [Effect::AbortTurn(TurnId(7))]);
    desk.withdraw(TurnId(7));
    assert_eq!(desk.session_is_back(), []);
}

#[test]
fn withdrawing_a_turn_closes_its_questions_and_tells_no_call() {
    let mut desk = with_ui(OnNoUi::Wait);
    desk.request(question(1, 1, "make"));
    desk.request(question(2, 2, "make"));
    let effects = desk.withdraw(TurnId(1));
    assert_eq!(told(&effects), []);
    assert!(
        matches!(
            &entries(&effects)[..],
            [Entry::ApprovalResolved {
                by: DecidedBy::Withdrawn,
                ..
            }]
        ),
        "{effects:?}"
    );
    assert_eq!(desk.pending().len(), 1);
}

#[test]
fn a_withdrawn_question_is_a_new_one_when_it_is_asked_again() {
    let mut desk = with_ui(OnNoUi::Wait);
    let asked = question(1, 1, "make");
    desk.request(asked.clone());
    desk.withdraw_all();
    let effects = desk.request(asked);
    assert_eq!(entries(&effects).len(), 1, "journalled again");
    assert_eq!(desk.pending().len(), 1);
}

#[test]
fn after_a_crash_grants_and_decisions_are_known_and_open_questions_come_again() {
    let mut before = with_ui(OnNoUi::Deny);
    let mut journal = Vec::new();
    for (n, text) in [(1, "make"), (2, "make check"), (3, "make install")] {
        journal.extend(entries(&before.request(question(n, 1, text))));
    }
    let first = question(1, 1, "").id;
    journal.extend(entries(
        &before.answer(&first, Decision::ApproveForSession, TUI).1,
    ));
    let second = question(2, 1, "").id;
    journal.extend(entries(
        &before.answer(&second, Decision::Deny { text: None }, TUI).1,
    ));

    let mut after = desk(OnNoUi::Deny);
    after.restore(&records(journal));
    let again = after.request(question(2, 1, "make check"));
    assert_eq!(told(&again), [("call-2/1", &Decision::Deny { text: None })]);
    let granted = after.request(question(9, 1, "make"));
    assert_eq!(told(&granted), [("call-9/1", &Decision::Approve)]);
    // The UI is there, but it was not announced yet: the question waits for it.
    let open = after.request(question(3, 1, "make install"));
    assert_eq!(entries(&open), [], "it is in the journal already");
    assert_eq!(reminder(&open).2, NO_UI_GRACE);
    assert!(matches!(
        after.attached(TUI, true)[..],
        [Effect::Remind { .. }, Effect::Show { .. }]
    ));
}

#[test]
fn after_a_crash_an_aborted_turn_is_still_aborted_unless_it_ended() {
    let mut before = with_ui(OnNoUi::Wait);
    let mut journal = entries(&before.request(question(1, 7, "make")));
    let id = question(1, 7, "").id;
    journal.extend(entries(&before.answer(&id, Decision::AbortTurn, TUI).1));
    let mut after = desk(OnNoUi::Wait);
    after.restore(&records(journal.clone()));
    assert_eq!(after.session_is_back(), [Effect::AbortTurn(TurnId(7))]);
    journal.push(Entry::TurnEnded {
        turn: TurnId(7),
        end: TurnEnd::Completed,
    });
    let mut after = desk(OnNoUi::Wait);
    after.restore(&records(journal));
    assert_eq!(after.session_is_back(), []);
}

#[test]
fn old_decisions_are_forgotten_in_order() {
    let mut decided = Decided::default();
    for n in 0..=REMEMBERED {
        decided.insert(ApprovalId(n.to_string()), Decision::Approve);
        decided.insert(ApprovalId(n.to_string()), Decision::Approve);
    }
    assert_eq!(decided.by_id.len(), REMEMBERED);
    assert!(!decided.by_id.contains_key(&ApprovalId::new("0")));
}

#[test]
fn the_origin_of_a_childs_question_is_shown() {
    let mut desk = with_ui(OnNoUi::Wait);
    let child = SessionId(uuid::Uuid::from_u128(5));
    let asked = ApprovalRequest {
        origin: vec![child],
        ..question(1, 1, "touch x")
    };
    let shown = desk.request(asked);
    assert!(shown.iter().any(|effect| matches!(
        effect,
        Effect::Show { request, .. } if request.origin == [child]
    )));
}

#[derive(Debug, Clone)]
enum Step {
    Request(u64),
    Answer(u64, u8),
    Attach(u64, bool),
    Detach(u64),
    Expire(u64, u64),
    Withdraw(u64),
    ToolPoolRestarted,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..5_u64).prop_map(Step::Request),
        4 => (0..5_u64, 0..4_u8).prop_map(|(n, d)| Step::Answer(n, d)),
        2 => (1..4_u64, any::<bool>()).prop_map(|(ui, can)| Step::Attach(ui, can)),
        2 => (1..4_u64).prop_map(Step::Detach),
        2 => (0..5_u64, 0..30_u64).prop_map(|(n, g)| Step::Expire(n, g)),
        1 => (0..2_u64).prop_map(Step::Withdraw),
        1 => Just(Step::ToolPoolRestarted),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    #[test]
    fn no_order_of_messages_answers_a_question_twice_or_approves_by_itself(steps in steps(), wait in any::<bool>()) {
        let mut desk = desk(if wait { OnNoUi::Wait } else { OnNoUi::Deny });
        let (mut open, mut approved_by_user) = (HashSet::new(), false);
        for step in steps {
            let effects = match step {
                Step::Request(n) => desk.request(question(n, n % 2, "make")),
                Step::Answer(n, decision) => {
                    let decision = match decision {
                        0 => Decision::Approve,
                        1 => Decision::ApproveForSession,
                        2 => Decision::AbortTurn,
                        _ => Decision::Deny { text: None },
                    };
                    let approves = decision.is_approval();
                    let (fate, effects) = desk.answer(&question(n, 0, "").id, decision, UiId(1));
                    prop_assert_eq!(fate == AnswerFate::Stale, effects.is_empty());
                    approved_by_user |= approves && fate == AnswerFate::Counted;
                    effects
                }
                Step::Attach(ui, can) => desk.attached(UiId(ui), can),
                Step::Detach(ui) => desk.detached(UiId(ui)),
                Step::Expire(n, generation) => desk.expire(&question(n, 0, "").id, generation),
                Step::Withdraw(turn) => desk.withdraw(TurnId(turn)),
                Step::ToolPoolRestarted => desk.withdraw_all(),
            };
            for effect in &effects {
                match effect {
                    Effect::Append(Entry::ApprovalRequested(request)) => prop_assert!(open.insert(request.id.clone())),
                    Effect::Append(Entry::ApprovalResolved { id, .. }) => prop_assert!(open.remove(id)),
                    Effect::Tell { decision, .. } if decision.is_approval() => prop_assert!(approved_by_user),
                    _ => {}
                }
            }
            let pending: HashSet<ApprovalId> = desk.pending().into_iter().map(|r| r.id).collect();
            prop_assert_eq!(&pending, &open, "the journal says what is open");
        }
    }
}
