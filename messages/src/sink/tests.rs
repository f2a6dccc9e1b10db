use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::TurnId;

fn attach(sink: &EventSink, ui: u64, lossless: bool, since: Option<u64>) -> Arc<AtomicUsize> {
    let wakes = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&wakes);
    let wake = Box::new(move || {
        count.fetch_add(1, Ordering::SeqCst);
    });
    sink.attach(Attachment {
        ui: UiId(ui),
        deltas: true,
        lossless,
        since,
        wake,
    });
    wakes
}

fn started(turn: u64) -> Event {
    Event::TurnStarted { turn: TurnId(turn) }
}

#[test]
fn deltas_of_one_item_merge_and_wake_once() {
    let sink = EventSink::new();
    let wakes = attach(&sink, 1, false, None);
    for _ in 0..20_000 {
        sink.delta(&ItemId::new("a"), DeltaKind::Text, "x");
    }
    assert_eq!(wakes.load(Ordering::SeqCst), 1);
    let drained = sink.drain(UiId(1));
    assert_eq!(drained.events.len(), 1);
    assert!(matches!(&drained.events[0].event, Event::Delta { text, .. } if text.len() == 20_000));
    sink.delta(&ItemId::new("a"), DeltaKind::Text, "y");
    assert_eq!(wakes.load(Ordering::SeqCst), 2);
}

#[test]
fn a_stuck_ui_gets_the_whole_text_in_one_resync() {
    let sink = EventSink::new();
    attach(&sink, 1, false, None);
    let piece = "é".repeat(1000);
    for _ in 0..3000 {
        sink.delta(&ItemId::new("a"), DeltaKind::Text, &piece);
    }
    let drained = sink.drain(UiId(1));
    assert_eq!(drained.events.len(), 1);
    assert!(
        matches!(&drained.events[0].event, Event::Resync { text, .. } if text.len() == 6_000_000)
    );
}

#[test]
fn a_record_is_published_once() {
    let sink = EventSink::new();
    attach(&sink, 1, false, None);
    sink.publish_record(Seq(3), vec![started(1)]);
    sink.publish_record(Seq(3), vec![started(1)]);
    sink.publish_record(Seq(2), vec![started(1)]);
    sink.publish_record(Seq(4), vec![started(2)]);
    assert_eq!(sink.drain(UiId(1)).events.len(), 2);
}

#[test]
fn a_late_ui_gets_what_it_missed_in_the_same_order() {
    let sink = EventSink::new();
    attach(&sink, 1, false, None);
    for turn in 1..=5 {
        sink.publish(started(turn));
    }
    attach(&sink, 2, false, Some(2));
    let first: Vec<_> = sink.drain(UiId(1)).events.into_iter().skip(2).collect();
    assert_eq!(sink.drain(UiId(2)).events, first);
}

#[test]
fn a_ui_that_never_reads_is_detached_but_a_lossless_one_keeps_every_event() {
    let sink = EventSink::new();
    attach(&sink, 1, false, None);
    attach(&sink, 2, true, None);
    for turn in 0..=SLOW_LIMIT as u64 {
        sink.publish(started(turn));
    }
    assert!(sink.drain(UiId(1)).detached);
    let drained = sink.drain(UiId(2));
    assert!(!drained.detached);
    assert_eq!(drained.events.len(), SLOW_LIMIT + 1);
}

#[test]
fn attaching_in_mid_item_shows_its_text_so_far() {
    let sink = EventSink::new();
    sink.delta(&ItemId::new("a"), DeltaKind::Text, "half an ans");
    attach(&sink, 1, false, None);
    let drained = sink.drain(UiId(1));
    assert!(
        matches!(&drained.events[0].event, Event::Resync { text, .. } if text == "half an ans")
    );
}

#[test]
fn pieces_after_a_resync_are_not_shown_twice() {
    let sink = EventSink::new();
    sink.delta(&ItemId::new("a"), DeltaKind::Text, "one ");
    attach(&sink, 1, false, None);
    sink.delta(&ItemId::new("b"), DeltaKind::Reasoning, "hm");
    sink.delta(&ItemId::new("a"), DeltaKind::Text, "two");
    let events = sink.drain(UiId(1)).events;
    let of_a: Vec<_> = events
        .iter()
        .filter(|e| matches!(&e.event, Event::Delta { item, .. } | Event::Resync { item, .. } if item.as_str() == "a"))
        .collect();
    assert_eq!(of_a.len(), 1);
    assert!(matches!(&of_a[0].event, Event::Resync { text, .. } if text == "one two"));
}
