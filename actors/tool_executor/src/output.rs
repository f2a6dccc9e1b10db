//! From a command's bytes to what is kept of them: text, head and tail, the cut stated. Pure.

use interpreter_messages::ProcessId;
use interpreter_messages::process::ProcessSnapshot;
use interpreter_messages::tool::{Cut, ExecOutput, ExitStatus};

/// Tokens of output by default and at the most (measured in the original: both 10,000).
const MAX_TOKENS: u64 = 10_000;
/// Bytes that count as one token.
const TOKEN_BYTES: u64 = 4;
/// Bytes of a crashed command's output that are told.
const TAIL: usize = 2_000;

/// Bytes of text kept for a call that asked for `tokens`.
pub(crate) fn budget(tokens: Option<u64>) -> usize {
    let bytes = tokens.unwrap_or(MAX_TOKENS).clamp(1, MAX_TOKENS) * TOKEN_BYTES;
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// What a snapshot of the output since `from` says to the model.
pub(crate) fn exec_output(
    snapshot: &ProcessSnapshot,
    from: u64,
    budget: usize,
    wall_ms: u64,
    process: ProcessId,
) -> ExecOutput {
    let (text, cut) = shorten(&snapshot.output, snapshot.gap, budget);
    let failed = !matches!(snapshot.exit, None | Some(ExitStatus::Code(0)));
    ExecOutput {
        text,
        total_bytes: snapshot.offset.saturating_sub(from),
        total_lines: snapshot.lines,
        cut,
        wall_ms,
        exit: snapshot.exit,
        process: snapshot.exit.is_none().then_some(process),
        denial: snapshot.denial.clone().filter(|_| failed),
    }
}

/// The last of a command's output, as text.
pub(crate) fn tail(output: &[u8]) -> String {
    let from = output.len().saturating_sub(TAIL);
    String::from_utf8_lossy(without_broken_start(&output[from..])).into_owned()
}

/// Text of at most `budget` bytes: all, or the first and the last half of it.
fn shorten(output: &[u8], gap: Option<(usize, u64)>, budget: usize) -> (String, Option<Cut>) {
    let (at, missing) = gap.unwrap_or((output.len(), 0));
    let (head, rest) = output.split_at(at.min(output.len()));
    let (head, rest) = if missing > 0 {
        (without_broken_end(head), without_broken_start(rest))
    } else {
        (head, rest)
    };
    let mut head = String::from_utf8_lossy(head).into_owned();
    let rest = String::from_utf8_lossy(rest);
    if missing == 0 && head.len() + rest.len() <= budget {
        head.push_str(&rest);
        return (head, None);
    }
    // One text with the gap's place known; then the middle around half the budget goes.
    let whole = head.len() + rest.len();
    let text = head.clone() + &rest;
    let first = text.floor_char_boundary((budget / 2).min(head.len().max(budget / 2)));
    let first = if missing > 0 {
        first.min(head.len())
    } else {
        first
    };
    let last = text.ceil_char_boundary(whole.saturating_sub(budget - budget / 2));
    let last = if missing > 0 {
        last.max(head.len())
    } else {
        last
    };
    let last = last.max(first);
    let left_out = missing + (last - first) as u64;
    let kept = format!("{}{}", &text[..first], &text[last..]);
    (
        kept,
        Some(Cut {
            at: first,
            bytes: left_out,
        }),
    )
}

/// Drops an incomplete UTF-8 character at the end: its rest is on the other side of a gap.
fn without_broken_end(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

/// Drops continuation bytes at the start: their character began on the other side of a gap.
fn without_broken_start(bytes: &[u8]) -> &[u8] {
    let broken = bytes
        .iter()
        .take(3)
        .take_while(|byte| (**byte & 0xC0) == 0x80)
        .count();
    &bytes[broken..]
}
