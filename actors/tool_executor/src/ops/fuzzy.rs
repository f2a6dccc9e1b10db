//! Why a text was not found: the nearest thing that is there, and how it differs. For hints in errors only; nothing
//! is ever changed on the strength of a likeness.

use similar::TextDiff;

/// Lines that are compared letter by letter when nothing better is found.
const MAX_COMPARED: usize = 2_000;
/// Likeness from which a line is worth naming; below it the hint would mislead.
const LIKE: f32 = 0.6;
/// Characters of a quoted line.
const QUOTED: usize = 120;

/// What to add to "does not occur": how the file's text differs from `wanted`, or an empty text.
pub(crate) fn hint(text: &str, wanted: &str, foreign: bool) -> String {
    if wanted.trim().is_empty() {
        return ": it is only white space; give text around it".to_owned();
    }
    let found = differs_in(text, wanted, "white space or indentation", |line| {
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    })
    .or_else(|| {
        differs_in(
            text,
            wanted,
            "the kind of quotes, dashes or spaces",
            |line| plain(line).trim().to_owned(),
        )
    })
    .or_else(|| differs_in(text, wanted, "upper and lower case", str::to_lowercase))
    .or_else(|| without_line_numbers(text, wanted))
    .or_else(|| unescaped(text, wanted))
    .or_else(|| nearest(text, wanted));
    let mut hint = found.unwrap_or_else(|| ": read the file again".to_owned());
    if foreign && !wanted.is_ascii() {
        hint.push_str(
            " (the file is not UTF-8, so text with characters beyond ASCII does not match)",
        );
    }
    hint
}

/// Lines of `text` that equal `wanted` once both went through `norm`.
fn differs_in(
    text: &str,
    wanted: &str,
    what: &str,
    norm: impl Fn(&str) -> String,
) -> Option<String> {
    let pattern: Vec<String> = wanted
        .trim_end_matches('\n')
        .split('\n')
        .map(&norm)
        .collect();
    let lines: Vec<&str> = text.split('\n').collect();
    let normed: Vec<String> = lines.iter().map(|line| norm(line)).collect();
    let at = if let [only] = pattern.as_slice() {
        normed.iter().position(|line| line.contains(only.as_str()))
    } else {
        normed
            .windows(pattern.len())
            .position(|window| window == pattern.as_slice())
    }?;
    let first = at + 1;
    let place = match pattern.len() {
        1 => format!("line {first}"),
        n => format!("lines {first}–{}", at + n),
    };
    let mut hint = format!(", but {place} would fit but for {what}");
    if let Some(tabs) = tabs_for_spaces(lines[at], wanted.split('\n').next().unwrap_or_default()) {
        hint.push_str(tabs);
    }
    hint.push_str(&format!(": `{}`", quote(lines[at])));
    Some(hint)
}

fn tabs_for_spaces(there: &str, wanted: &str) -> Option<&'static str> {
    match (there.starts_with('\t'), wanted.starts_with('\t')) {
        (true, false) if wanted.starts_with(' ') => Some(" (the file has tabs)"),
        (false, true) if there.starts_with(' ') => Some(" (the file has spaces)"),
        _ => None,
    }
}

/// Typographic characters as their plain forms.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
            '\u{2018}'..='\u{201B}' => '\'',
            '\u{201C}'..='\u{201F}' => '"',
            '\u{00A0}' | '\u{2002}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{3000}' => ' ',
            c => c,
        })
        .collect()
}

/// The wanted text carries the line numbers that reading shows.
fn without_line_numbers(text: &str, wanted: &str) -> Option<String> {
    let strip = |line: &str| -> Option<String> {
        let rest = line
            .trim_start()
            .trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.len() == line.trim_start().len() {
            return None;
        }
        let rest = rest.strip_prefix(['\t', ':', '|', '→'])?;
        Some(rest.to_owned())
    };
    let lines: Option<Vec<String>> = wanted.lines().map(strip).collect();
    let stripped = lines?.join("\n");
    (!stripped.trim().is_empty() && text.contains(&stripped))
        .then(|| ": leave out the line numbers".to_owned())
}

/// The wanted text has `\n` and the like written out, or the other way round.
fn unescaped(text: &str, wanted: &str) -> Option<String> {
    let real = wanted
        .replace("\\n", "\n")
        .replace("\\t", "\t")
        .replace("\\\"", "\"");
    (real != wanted && text.contains(&real))
        .then(|| ": it would without the backslashes (`\\n`, `\\t`, `\\\"`)".to_owned())
}

/// The line that is most like the first line of `wanted` that says something.
fn nearest(text: &str, wanted: &str) -> Option<String> {
    let first = wanted.lines().map(str::trim).find(|line| line.len() > 2)?;
    let (mut best, mut at) = (LIKE, None);
    for (n, line) in text.lines().enumerate().take(MAX_COMPARED) {
        let line = line.trim();
        let (short, long) = (line.len().min(first.len()), line.len().max(first.len()));
        // The likeness of lines cannot be above what their lengths allow.
        if long > 400 || 2 * short * 10 < 6 * (short + long) {
            continue;
        }
        let ratio = TextDiff::from_chars(first, line).ratio();
        if ratio > best {
            (best, at) = (ratio, Some((n + 1, line)));
        }
    }
    let (number, line) = at?;
    Some(if line == first {
        format!(
            "; its first line is line {number}, but what follows there differs: read the file again"
        )
    } else {
        format!("; the nearest is line {number}: `{}`", quote(line))
    })
}

fn quote(line: &str) -> String {
    match line.char_indices().nth(QUOTED) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}
