use super::*;

fn with(vars: &[(&str, &str)]) -> Result<PathBuf, ConfigError> {
    home(|name| {
        let found = vars.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

#[test]
fn the_variable_wins_and_the_default_need_not_exist() {
    let folder = tempfile::tempdir().expect("a temp directory can be made");
    let path = folder.path().canonicalize().expect("it was just made");
    let text = path.display().to_string();
    assert_eq!(
        with(&[("INTERPRETER_HOME", &text), ("HOME", "/h")]),
        Ok(path)
    );
    let default = Ok(PathBuf::from("/h/.openinterpreter"));
    assert_eq!(with(&[("HOME", "/h")]), default);
    assert_eq!(with(&[("INTERPRETER_HOME", ""), ("HOME", "/h")]), default);
}

#[test]
fn a_home_that_is_no_directory_is_refused() {
    let file = tempfile::NamedTempFile::new().expect("a temp file can be made");
    let text = file.path().display().to_string();
    let told = |vars: &[(&str, &str)]| {
        let error = with(vars).expect_err("no home");
        error.to_string().replace(&text, "FILE")
    };
    insta::assert_snapshot!(format!(
        "{}\n{}\n{}",
        told(&[("INTERPRETER_HOME", &text)]),
        told(&[("INTERPRETER_HOME", "/nowhere/at all")]),
        told(&[("HOME", "")]),
    ));
}
