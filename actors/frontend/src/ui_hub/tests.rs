use std::time::Duration;

use interpreter_messages::ApprovalId;
use interpreter_messages::approval::{DecidedBy, Decision};
use ractor::call_t;
use tokio::sync::mpsc;

use super::*;
use crate::testing::{World, message, probe, question, ready};

async fn attach(world: &World, ui: &ActorRef<UiMsg>, can_answer: bool, since: Option<u64>) -> UiId {
    let attach = |reply| UiHubMsg::Attach {
        session: world.handle.clone(),
        ui: ui.clone(),
        can_answer,
        deltas: false,
        lossless: true,
        since,
        ready: ready(),
        reply: Some(reply),
    };
    world
        .hub
        .call(attach, Duration::from_secs(5))
        .await
        .expect("the hub answers")
}

async fn attached_id(ui: &mut mpsc::UnboundedReceiver<UiMsg>) -> UiId {
    match ui.recv().await.expect("the UI lives") {
        UiMsg::Attached { ui } => ui,
        other => panic!("not attached first: {other:?}"),
    }
}

async fn detached(world: &mut World) -> UiId {
    loop {
        if let ApprovalMsg::Detached { ui } = world.approval.recv().await.expect("approval lives") {
            return ui;
        }
    }
}

#[tokio::test]
async fn a_ui_hears_its_id_then_finds_ready_before_what_it_missed() {
    let mut world = World::new().await;
    world.record(vec![message("a", "one")]);
    let (ui, mut heard) = probe().await;
    let id = attach(&world, &ui, true, Some(0)).await;
    assert_eq!(attached_id(&mut heard).await, id);
    assert!(matches!(heard.recv().await, Some(UiMsg::Wake)));
    let events = world.handle.sink.drain(id).events;
    assert_eq!(events[0].event, ready());
    assert_eq!(events[1].event, message("a", "one"));
    assert!(matches!(
        world.approval.recv().await,
        Some(ApprovalMsg::Attached { ui, can_answer: true }) if ui == id
    ));
}

#[tokio::test]
async fn a_question_reaches_those_who_can_answer_and_a_newcomer_alone() {
    let world = World::new().await;
    let (first, mut first_heard) = probe().await;
    let (second, mut second_heard) = probe().await;
    let (watcher, mut watcher_heard) = probe().await;
    attach(&world, &first, true, None).await;
    let second_id = attach(&world, &second, true, None).await;
    attach(&world, &watcher, false, None).await;
    let ask = |id: &str, only| UiHubMsg::Ask {
        session: world.handle.id,
        request: question(id),
        only,
    };
    world.hub.cast(ask("all", None)).expect("the hub lives");
    world
        .hub
        .cast(ask("newcomer", Some(second_id)))
        .expect("the hub lives");
    let resolved = UiHubMsg::Resolved {
        session: world.handle.id,
        id: ApprovalId::new("all"),
        decision: Decision::Approve,
        by: DecidedBy::Timeout,
    };
    world.hub.cast(resolved).expect("the hub lives");
    let mut heard = Vec::new();
    for (name, ui) in [
        ("first", &mut first_heard),
        ("second", &mut second_heard),
        ("watcher", &mut watcher_heard),
    ] {
        loop {
            match ui.recv().await.expect("the UI lives") {
                UiMsg::Ask(request) => heard.push(format!("{name}: {}", request.id)),
                UiMsg::Resolved { .. } => break,
                _ => {}
            }
        }
    }
    assert_eq!(heard, ["first: all", "second: all", "second: newcomer"]);
}

#[tokio::test]
async fn another_sessions_uis_hear_nothing() {
    let world = World::new().await;
    let (ui, mut heard) = probe().await;
    attach(&world, &ui, true, None).await;
    let other = SessionId(uuid::Uuid::from_u128(8));
    for session in [other, world.handle.id] {
        let ask = UiHubMsg::Ask {
            session,
            request: question(&session.to_string()),
            only: None,
        };
        world.hub.cast(ask).expect("the hub lives");
    }
    loop {
        if let UiMsg::Ask(request) = heard.recv().await.expect("the UI lives") {
            assert_eq!(request.id.as_str(), world.handle.id.to_string());
            break;
        }
    }
}

/// A UI that dies of its first wake.
struct Mortal;

impl Actor for Mortal {
    type Msg = UiMsg;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<UiMsg>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        _: ActorRef<UiMsg>,
        message: UiMsg,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        assert!(!matches!(message, UiMsg::Wake), "as the test wants");
        Ok(())
    }
}

#[tokio::test]
async fn a_ui_that_crashes_is_detached_from_sink_and_approval() {
    let mut world = World::new().await;
    let hub = world.hub.get().expect("the hub lives");
    let (ui, ended) = Actor::spawn_linked(None, Mortal, (), hub.get_cell())
        .await
        .expect("it starts");
    let id = attach(&world, &ui, true, None).await;
    ended.await.expect("its task ends");
    assert_eq!(detached(&mut world).await, id);
    assert_eq!(world.handle.sink.attached(), 0);
}

#[tokio::test]
async fn a_crash_of_the_hub_leaves_nobody_attached_and_ids_are_never_used_again() {
    let fault = FaultSwitch::new(|point| assert_ne!(point, "ui_hub.detach", "as the test wants"));
    let mut world = World::with(fault).await;
    let (ui, _heard) = probe().await;
    let before = attach(&world, &ui, true, None).await;
    world
        .hub
        .cast(UiHubMsg::Detach { ui: before })
        .expect("the hub lives");
    assert_eq!(detached(&mut world).await, before);
    assert_eq!(world.handle.sink.attached(), 0);
    world.start_hub(FaultSwitch::default()).await;
    assert!(attach(&world, &ui, true, None).await > before);
}

#[tokio::test]
async fn attaching_again_takes_the_place_of_the_first_attachment() {
    let mut world = World::new().await;
    let (ui, _heard) = probe().await;
    let first = attach(&world, &ui, true, None).await;
    let second = attach(&world, &ui, true, None).await;
    assert_eq!(detached(&mut world).await, first);
    assert_ne!(first, second);
    assert_eq!(world.handle.sink.attached(), 1);
}

#[tokio::test]
async fn an_approval_that_came_back_hears_of_everyone() {
    let mut world = World::new().await;
    let (ui, _heard) = probe().await;
    let (watcher, _watched) = probe().await;
    let ui = attach(&world, &ui, true, None).await;
    let watcher = attach(&world, &watcher, false, None).await;
    let ask = UiHubMsg::WhoCanAnswer {
        session: world.handle.id,
    };
    world.hub.cast(ask).expect("the hub lives");
    let mut heard = Vec::new();
    while heard.len() < 4 {
        if let Some(ApprovalMsg::Attached { ui, can_answer }) = world.approval.recv().await {
            heard.push((ui, can_answer));
        }
    }
    assert_eq!(heard[2..], [(ui, true), (watcher, false)]);
}

#[tokio::test]
async fn close_all_waits_for_every_goodbye() {
    let world = World::new().await;
    let (ui, mut heard) = probe().await;
    attach(&world, &ui, true, None).await;
    let hub = world.hub.get().expect("the hub lives");
    let goodbye = tokio::spawn(async move {
        loop {
            if let UiMsg::Close(reply) = heard.recv().await.expect("the UI lives") {
                reply.send(()).expect("somebody waits");
                return;
            }
        }
    });
    call_t!(hub, UiHubMsg::CloseAll, 5_000).expect("the hub answers");
    assert!(goodbye.is_finished());
    goodbye.await.expect("it said goodbye");
}
