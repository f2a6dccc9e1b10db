use interpreter_messages::journal::Batch;
use proptest::prelude::*;

use super::*;
use crate::testing::session;

/// The file of some batches, and the offset at which each batch ends.
pub(crate) fn file_of(batches: &[Batch]) -> (Vec<u8>, Vec<usize>) {
    let (mut encoder, mut text, mut ends) = (Encoder::default(), String::new(), Vec::new());
    let mut seq = 0;
    for batch in batches {
        let of = u32::try_from(batch.entries.len()).expect("few");
        for (index, entry) in (0..of).zip(&batch.entries) {
            let record = Record {
                seq: Seq(seq),
                at: batch.at,
                entry: entry.clone(),
            };
            let place = Place {
                batch: batch.id,
                index,
                of,
            };
            encoder
                .encode(&record, Some(place), &mut text)
                .expect("it can be written");
            seq += 1;
        }
        ends.push(text.len());
    }
    (text.into_bytes(), ends)
}

fn entries_of(batches: &[Batch]) -> Vec<Entry> {
    batches.iter().flat_map(|b| b.entries.clone()).collect()
}

fn entries(parsed: &Parsed) -> Vec<Entry> {
    let records = &parsed.content.records;
    records.iter().map(|record| record.entry.clone()).collect()
}

fn without(bytes: &[u8], lost: &[Lost]) -> Vec<u8> {
    let mut left = Vec::new();
    let mut from = 0;
    for lost in lost {
        left.extend_from_slice(&bytes[from..lost.range.start]);
        from = lost.range.end;
    }
    left.extend_from_slice(&bytes[from..]);
    left
}

/// What stays in a file after it was mended is whole, and holds the same.
fn assert_valid_after(bytes: &[u8], parsed: &Parsed) {
    let mut mended = without(bytes, &parsed.lost);
    if parsed.damaged_end {
        mended.extend_from_slice(b"{\"type\":\"a line after it\"}\n");
    }
    let mut again = parse(&mended);
    if parsed.damaged_end {
        again.content.records.pop();
    }
    assert_eq!(again.lost, []);
    assert_eq!(again.content.records, parsed.content.records);
    assert_eq!(again.content.last, parsed.content.last);
}

#[test]
fn a_whole_file_gives_all_records_and_numbers() {
    let batches = session(2);
    let parsed = parse(&file_of(&batches).0);
    assert_eq!(entries(&parsed), entries_of(&batches));
    assert_eq!(parsed.lost, []);
    assert_eq!(parsed.content.last.session, 13);
    for (n, record) in parsed.content.records.iter().enumerate() {
        assert_eq!(record.seq, Seq(n as u64));
    }
    assert_eq!(parsed.content.encoder.total.input_total, 400);
}

#[test]
fn the_encoder_goes_on_as_if_it_had_never_stopped() {
    let batches = session(2);
    let whole = file_of(&batches).0;
    let parsed = parse(&file_of(&batches[..7]).0);
    let mut encoder = parsed.content.encoder;
    let mut text = String::from_utf8(file_of(&batches[..7]).0).expect("UTF-8");
    for batch in &batches[7..] {
        let of = u32::try_from(batch.entries.len()).expect("few");
        for (index, entry) in (0..of).zip(&batch.entries) {
            let record = Record {
                seq: Seq(0),
                at: batch.at,
                entry: entry.clone(),
            };
            let place = Place {
                batch: batch.id,
                index,
                of,
            };
            encoder
                .encode(&record, Some(place), &mut text)
                .expect("it can be written");
        }
    }
    assert_eq!(text.into_bytes(), whole);
}

#[test]
fn a_file_cut_at_any_byte_gives_the_batches_before_the_cut() {
    let batches = session(1);
    let (bytes, ends) = file_of(&batches);
    for cut in 0..=bytes.len() {
        let parsed = parse(&bytes[..cut]);
        // The end of a line may be missing: the batch is whole without it, and without the mirror of its last record.
        let whole = ends.iter().filter(|end| **end <= cut).count();
        let expected = entries_of(&batches[..whole]);
        let more = batches.get(whole).map_or(&[][..], std::slice::from_ref);
        let or_expected = [expected.clone(), entries_of(more)].concat();
        let got = entries(&parsed);
        assert!(got == expected || got == or_expected, "cut at {cut}");
        assert_valid_after(&bytes[..cut], &parsed);
    }
}

#[test]
fn a_damaged_line_in_the_middle_costs_that_line_only() {
    let batches = session(2);
    let (bytes, _) = file_of(&batches);
    let text = String::from_utf8(bytes).expect("UTF-8");
    for number in 1..text.lines().count() {
        let lines: Vec<String> = text
            .lines()
            .enumerate()
            .map(|(n, line)| {
                if n == number {
                    "\u{0}garbage".to_owned()
                } else {
                    line.to_owned()
                }
            })
            .collect();
        let damaged = lines.join("\n") + "\n";
        let parsed = parse(damaged.as_bytes());
        assert_eq!(parsed.lost.len(), 1, "line {number}");
        assert_eq!(parsed.lost[0].line, number + 1);
        assert!(matches!(parsed.lost[0].why, Why::Damaged(_)));
        let left = entries(&parsed).len();
        let all = entries_of(&batches).len();
        assert!(
            left == all || left == all - 1,
            "line {number}: {left} of {all}"
        );
        assert_valid_after(damaged.as_bytes(), &parsed);
    }
}

#[test]
fn damage_at_the_end_keeps_what_is_whole_of_the_last_batch() {
    let batches = session(1);
    let text = String::from_utf8(file_of(&batches).0).expect("UTF-8");
    let end = text.trim_end().rfind('\n').expect("lines") + 1;
    let parsed = parse(format!("{}oops\n", &text[..end]).as_bytes());
    assert!(parsed.damaged_end);
    let all = entries_of(&batches);
    assert_eq!(entries(&parsed), all[..all.len() - 1]);
}

#[test]
fn bytes_that_are_no_text_are_damage() {
    let (mut bytes, _) = file_of(&session(1));
    let end = bytes.len();
    bytes.extend_from_slice(b"{\"type\":\"\xff\xfe\"}\n");
    let parsed = parse(&bytes);
    assert_eq!(parsed.lost[0].range, end..bytes.len());
}

#[test]
fn a_block_of_zeros_after_a_power_cut_is_a_torn_end() {
    let batches = session(1);
    let (mut bytes, _) = file_of(&batches);
    let end = bytes.len();
    bytes.extend_from_slice(&[0; 4096]);
    let parsed = parse(&bytes);
    assert_eq!(parsed.lost.len(), 1);
    assert_eq!(
        (parsed.lost[0].range.clone(), &parsed.lost[0].why),
        (end..end + 4096, &Why::Torn)
    );
    assert_eq!(entries(&parsed), entries_of(&batches));
}

#[test]
fn a_repeated_batch_is_taken_once_with_its_mirror() {
    let batches = session(1);
    let mut twice = batches.clone();
    twice.insert(3, batches[1].clone());
    twice.push(batches[5].clone());
    let (bytes, _) = file_of(&twice);
    let parsed = parse(&bytes);
    assert_eq!(entries(&parsed), entries_of(&batches));
    assert!(parsed.lost.iter().all(|lost| lost.why == Why::Duplicate));
    assert_eq!(parsed.lost.len(), 4, "turn, input, its mirror, outcome");
    assert_valid_after(&bytes, &parsed);
}

#[test]
fn a_last_line_without_its_end_is_whole() {
    let batches = session(1);
    let (bytes, _) = file_of(&batches);
    let parsed = parse(&bytes[..bytes.len() - 1]);
    assert!(parsed.needs_newline);
    assert_eq!(parsed.lost, []);
    assert_eq!(entries(&parsed), entries_of(&batches));
}

#[test]
fn empty_lines_are_no_damage() {
    let batches = session(1);
    let (bytes, _) = file_of(&batches);
    let spaced = String::from_utf8(bytes)
        .expect("UTF-8")
        .replace('\n', "\n \n\n");
    let parsed = parse(spaced.as_bytes());
    assert_eq!(parsed.lost, []);
    assert_eq!(entries(&parsed), entries_of(&batches));
}

proptest! {
    #[test]
    fn any_bytes_in_any_place_are_survived(
        at in any::<prop::sample::Index>(),
        length in 0..300_usize,
        noise in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let (mut bytes, _) = file_of(&session(1));
        let at = at.index(bytes.len());
        let end = bytes.len().min(at + length);
        bytes.splice(at..end, noise);
        let parsed = parse(&bytes);
        assert_valid_after(&bytes, &parsed);
        for pair in parsed.lost.windows(2) {
            prop_assert!(pair[0].range.end <= pair[1].range.start);
        }
    }
}
