use std::sync::mpsc::{Receiver, TryRecvError, channel};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::*;

/// Pace of the keys that a test presses again and again.
const PACE: Duration = Duration::from_millis(5);

/// The person's end of a terminal, and ours.
fn terminal() -> (File, TerminalAnswers) {
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&person).expect("granted");
    unlockpt(&person).expect("unlocked");
    let name = ptsname(&person, Vec::new()).expect("a name");
    let ours = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("opened");
    (
        File::from(person),
        TerminalAnswers::on(File::from(ours), Duration::ZERO),
    )
}

/// Waits for an answer in a thread.
fn wait(mut answers: TerminalAnswers, cancelled: Arc<AtomicBool>) -> Receiver<Option<Decision>> {
    let (tell, told) = channel();
    std::thread::spawn(move || tell.send(answers.wait(&cancelled)));
    told
}

/// Presses keys until there is an answer: what comes too soon is dropped.
fn press(person: &mut File, keys: &str, answer: &Receiver<Option<Decision>>) -> Option<Decision> {
    loop {
        person.write_all(keys.as_bytes()).expect("typed");
        match answer.recv_timeout(PACE) {
            Ok(decision) => return decision,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn keys_typed_ahead_do_not_count_and_the_modes_come_back() {
    let (mut person, answers) = terminal();
    let before = tcgetattr(&answers.tty).expect("a terminal").local_modes;
    let looker = answers.tty.try_clone().expect("a descriptor");
    person.write_all(b"yyyy\ny").expect("typed");
    let answer = wait(answers, Arc::default());
    assert_eq!(
        press(&mut person, "a", &answer),
        Some(Decision::ApproveForSession)
    );
    assert_eq!(tcgetattr(&looker).expect("a terminal").local_modes, before);
}

#[test]
fn an_arrow_key_is_not_the_escape_key() {
    let (mut person, answers) = terminal();
    let looker = answers.tty.try_clone().expect("a descriptor");
    let answer = wait(answers, Arc::default());
    while tcgetattr(&looker)
        .expect("a terminal")
        .local_modes
        .contains(LocalModes::ICANON)
    {
        std::thread::yield_now();
    }
    person.write_all(b"\x1b[A").expect("typed");
    assert_eq!(press(&mut person, "y", &answer), Some(Decision::Approve));
}

#[test]
fn the_escape_key_ends_the_turn() {
    let (mut person, answers) = terminal();
    let answer = wait(answers, Arc::default());
    // Once a byte is read alone, no other follows within the gap.
    loop {
        person.write_all(b"\x1b").expect("typed");
        match answer.recv_timeout(4 * ESCAPE_GAP) {
            Ok(decision) => {
                assert_eq!(decision, Some(Decision::AbortTurn));
                return;
            }
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_refusal_may_say_what_to_do_instead() {
    let (mut person, answers) = terminal();
    let answer = wait(answers, Arc::default());
    let mut screen = String::new();
    let mut bytes = [0; 256];
    while !screen.contains("What instead?") {
        person.write_all(b"n").expect("typed");
        let mut fds = [PollFd::new(&person, PollFlags::IN)];
        let pace = Timespec::try_from(PACE).expect("a time");
        if poll(&mut fds, Some(&pace)).expect("polled") > 0 {
            let read = person.read(&mut bytes).expect("shown");
            screen.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
    }
    assert_eq!(answer.try_recv(), Err(TryRecvError::Empty));
    person.write_all(b" use make\n").expect("typed");
    let Some(Decision::Deny { text: Some(text) }) = answer.recv().expect("an answer") else {
        panic!("not a refusal with a text");
    };
    assert!(text.ends_with("use make"), "{text}");
}

#[test]
fn the_end_of_input_is_a_refusal() {
    let (mut person, answers) = terminal();
    let answer = wait(answers, Arc::default());
    assert_eq!(
        press(&mut person, "\u{4}", &answer),
        Some(Decision::Deny { text: None })
    );
}

#[test]
fn a_question_settled_elsewhere_ends_the_wait() {
    let (_person, answers) = terminal();
    let cancelled = Arc::new(AtomicBool::new(false));
    let restorer = answers.restorer().expect("a descriptor");
    let answer = wait(answers, Arc::clone(&cancelled));
    cancelled.store(true, Ordering::Relaxed);
    assert_eq!(answer.recv(), Ok(None));
    restorer.restore();
}

#[test]
fn a_restorer_puts_back_the_modes_of_an_open_question() {
    let (_person, answers) = terminal();
    let looker = answers.tty.try_clone().expect("a descriptor");
    let restorer = answers.restorer().expect("a descriptor");
    let icanon = || {
        tcgetattr(&looker)
            .expect("a terminal")
            .local_modes
            .contains(LocalModes::ICANON)
    };
    let cancelled = Arc::new(AtomicBool::new(false));
    let answer = wait(answers, Arc::clone(&cancelled));
    while icanon() {
        std::thread::yield_now();
    }
    restorer.restore();
    assert!(icanon());
    cancelled.store(true, Ordering::Relaxed);
    assert_eq!(answer.recv(), Ok(None));
}
