use proptest::prelude::*;

use super::*;

#[test]
fn ordinary_text_stays_as_it_is() {
    let text = "git commit -m 'größe → 10 µm'\n  echo 日本";
    assert_eq!(visible(text), text);
}

#[test]
fn what_hides_or_reorders_is_written_out() {
    assert_eq!(
        visible("rm\u{202e}x\u{200b}\u{e0041}\u{1b}[2K\r\u{7f}\u{9b}\t\u{a0}\u{fe0f}\u{3164}"),
        "rm\\u{202e}x\\u{200b}\\u{e0041}\\u{1b}[2K\\u{d}\\u{7f}\\u{9b}\\u{9}\\u{a0}\\u{fe0f}\\u{3164}"
    );
}

#[test]
fn a_long_run_of_spaces_is_counted() {
    let text = format!("ls{}&& rm -rf /", " ".repeat(200));
    assert_eq!(visible(&text), "ls\\u{20}×200&& rm -rf /");
    assert_eq!(visible(&" ".repeat(16)), " ".repeat(16));
}

proptest! {
    #[test]
    fn nothing_hidden_is_left_and_it_is_stable(text in any::<String>()) {
        let shown = visible(&text);
        prop_assert!(!shown.chars().any(is_hidden));
        prop_assert_eq!(visible(&shown), shown);
    }
}
