//! Write: a whole file. An existing file keeps its encoding, byte order mark, line ends, mode and owner.

use std::path::Path;

use interpreter_messages::tool::Write;

use super::change::{Plan, Seen, Step, require_fresh};
use super::error::OpError;
use super::load::{Loaded, absolute, load_if_there};
use super::text::{Encoding, TextFile, to_crlf};

/// Plans a write.
pub(crate) fn plan(cwd: &Path, order: &Write, seen: Option<&Seen>) -> Result<Plan, OpError> {
    let path = absolute(cwd, &order.path)?;
    let loaded = load_if_there(&path)?;
    require_fresh(&path, loaded.as_ref(), seen)?;
    let after = in_the_style_of(loaded.as_ref(), &order.content);
    Ok(Plan::one(Step::to(path, loaded, after)))
}

/// The bytes for new content, stored as the old file is: the model sees text with `\n` and without a mark, so it
/// cannot know these.
pub(crate) fn in_the_style_of(old: Option<&Loaded>, content: &str) -> Vec<u8> {
    let old = old.and_then(|loaded| TextFile::parse(&loaded.bytes));
    let Some(mut old) = old else {
        return content.as_bytes().to_vec();
    };
    let text = if old.crlf() && !content.contains('\r') {
        to_crlf(content)
    } else {
        content.to_owned()
    };
    let text = text.strip_prefix('\u{FEFF}').map_or(text.as_str(), |rest| {
        old.bom = true;
        rest
    });
    // What was no UTF-8 is replaced as a whole, and by UTF-8.
    if old.encoding == Encoding::BrokenUtf16 {
        return text.as_bytes().to_vec();
    }
    old.bytes_with(text.as_bytes())
        .unwrap_or_else(|| text.as_bytes().to_vec())
}
