//! Changes of files.

use interpreter_messages::approval::Subject;
use interpreter_messages::tool::Intent;

use super::*;

#[test]
fn a_write_inside_the_workspace_needs_a_journalled_intent_and_no_question() {
    let mut flow = Flow::new(setup(write_operation()));
    let effects = flow.step(Input::Begin, 0);
    assert!(matches!(
        &effects[..],
        [Effect::File { request, escalated: false }] if matches!(request.order, FileOrder::Prepare { .. })
    ));
    let effects = flow.step(prepared(&["/srv/work/a"]), 1);
    let intent = Intent::Files {
        changes: vec![change("/srv/work/a")],
    };
    assert_eq!(effects, [Effect::Intend(intent)]);
    let effects = flow.step(Input::Proceed, 2);
    assert!(matches!(
        &effects[..],
        [Effect::File { request, escalated: false }] if matches!(request.order, FileOrder::Apply { .. })
    ));
    assert_eq!(
        flow.step(Input::Proceed, 3),
        [],
        "a second go has no effect"
    );
    assert!(matches!(
        outcome(&flow.step(done(), 4)),
        ToolOutcome::Ok { .. }
    ));
}

#[test]
fn untrusted_asks_for_every_change() {
    let mut setup = setup(write_operation());
    setup.approval = ApprovalPolicy::Untrusted;
    let mut flow = Flow::new(setup);
    flow.step(Input::Begin, 0);
    let effects = flow.step(prepared(&["/srv/work/a"]), 1);
    let question = asked(&effects);
    assert_eq!((question.id.as_str(), &question.reason), ("c/1", &None));
    assert!(matches!(
        question.subject,
        Subject::Files {
            escalated: false,
            ..
        }
    ));
    assert_eq!(
        flow.step(decided(2, Decision::Approve), 2),
        [],
        "another question's answer"
    );
    assert_eq!(asked(&flow.step(Input::AskAgain, 3)).id.as_str(), "c/1");
    let effects = flow.step(decided(1, Decision::Approve), 4);
    assert!(matches!(effects[..], [Effect::Intend(_)]));
    assert_eq!(
        flow.step(decided(1, Decision::Approve), 5),
        [],
        "a second answer"
    );
}

#[test]
fn a_change_outside_the_scope_asks_to_leave_the_sandbox() {
    for path in ["/etc/hosts", "/srv/work/.git/config", "/srv/work-other/a"] {
        let mut flow = Flow::new(setup(write_operation()));
        flow.step(Input::Begin, 0);
        let effects = flow.step(prepared(&["/srv/work/a", path]), 1);
        let question = asked(&effects);
        assert!(matches!(
            question.subject,
            Subject::Files {
                escalated: true,
                ..
            }
        ));
        assert!(question.reason.as_ref().expect("a reason").contains(path));
        flow.step(decided(1, Decision::ApproveForSession), 2);
        let effects = flow.step(Input::Proceed, 3);
        assert!(
            matches!(
                effects[..],
                [Effect::File {
                    escalated: true,
                    ..
                }]
            ),
            "{effects:?}"
        );
    }
}

#[test]
fn a_refused_change_is_denied_with_the_reason() {
    for (decision, reason) in [
        (
            Decision::Deny {
                text: Some("not this file".to_owned()),
            },
            "not this file",
        ),
        (Decision::Deny { text: None }, "the user refused this"),
        (Decision::TimedOut, "nobody answered the question in time"),
        (
            Decision::AbortTurn,
            "the user refused this and ended the turn",
        ),
    ] {
        let mut flow = Flow::new(setup(write_operation()));
        flow.step(Input::Begin, 0);
        flow.step(prepared(&["/etc/hosts"]), 1);
        let effects = flow.step(decided(1, decision), 2);
        let reason = reason.to_owned();
        assert_eq!(outcome(&effects), &ToolOutcome::Denied { reason });
    }
}

#[test]
fn a_write_that_the_kernel_refuses_may_be_let_out_by_a_second_question() {
    let applying = || {
        let mut flow = Flow::new(setup(write_operation()));
        flow.step(Input::Begin, 0);
        flow.step(prepared(&["/srv/work/a"]), 1);
        flow.step(Input::Proceed, 2);
        flow
    };
    let mut flow = applying();
    assert_eq!(asked(&flow.step(refusal(true), 3)).id.as_str(), "c/2");
    assert_eq!(asked(&flow.step(Input::AskAgain, 4)).id.as_str(), "c/2");
    let effects = flow.step(decided(2, Decision::Approve), 5);
    assert!(matches!(
        effects[..],
        [Effect::File {
            escalated: true,
            ..
        }]
    ));
    // Not a third time.
    assert!(matches!(
        outcome(&flow.step(refusal(true), 6)),
        ToolOutcome::Failed { .. }
    ));

    let mut flow = applying();
    flow.step(refusal(true), 3);
    let effects = flow.step(decided(2, Decision::Deny { text: None }), 4);
    let reason = "cannot write /srv/work/a; the user refused this".to_owned();
    assert_eq!(outcome(&effects), &ToolOutcome::Denied { reason });

    let effects = applying().step(refusal(false), 3);
    assert!(
        matches!(outcome(&effects), ToolOutcome::Failed { .. }),
        "nothing to ask"
    );
}
