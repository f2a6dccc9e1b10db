use std::sync::mpsc;

use super::*;
use crate::testing::Device;

#[tokio::test]
async fn text_arrives_in_order_and_finish_waits_for_it() {
    let device = Device::default();
    let pen = Pen::new(device.boxed()).expect("a thread");
    for n in 0..1_000 {
        pen.put(format!("{n}\n"));
    }
    pen.finish().await;
    let expected: String = (0..1_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(device.text(), expected);
    assert_eq!(pen.unwritten(), 0);
}

#[test]
fn a_stuck_device_blocks_nobody_and_gets_everything_later() {
    let device = Device::stuck();
    let pen = Pen::new(device.boxed()).expect("a thread");
    for _ in 0..10_000 {
        pen.put("0123456789".to_owned());
    }
    assert_eq!(pen.unwritten(), 100_000);
    let (idle, is_idle) = mpsc::channel();
    pen.when_idle(Box::new(move || idle.send(()).expect("the test waits")));
    device.release();
    is_idle.recv().expect("it becomes idle");
    assert_eq!(device.text().len(), 100_000);
}

#[test]
fn a_device_that_is_gone_is_told_once_and_takes_no_more() {
    let pen = Pen::new(Device::gone().boxed()).expect("a thread");
    let (broken, is_broken) = mpsc::channel();
    pen.when_broken(move |kind| broken.send(kind).expect("the test waits"));
    pen.put("x".to_owned());
    assert_eq!(is_broken.recv(), Ok(io::ErrorKind::BrokenPipe));
    pen.put("y".to_owned());
    assert_eq!(pen.unwritten(), 0);
    let (late, is_late) = mpsc::channel();
    pen.when_broken(move |kind| late.send(kind).expect("the test waits"));
    assert_eq!(is_late.recv(), Ok(io::ErrorKind::BrokenPipe));
}

#[test]
fn what_was_put_is_written_after_the_last_clone_is_gone() {
    let device = Device::stuck();
    let pen = Pen::new(device.boxed()).expect("a thread");
    let (idle, is_idle) = mpsc::channel();
    pen.put("last words".to_owned());
    pen.when_idle(Box::new(move || idle.send(()).expect("the test waits")));
    drop(pen);
    device.release();
    is_idle.recv().expect("it becomes idle");
    assert_eq!(device.text(), "last words");
}
