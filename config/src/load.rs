//! Reads the layers and merges them: defaults < system < user < profile < trusted project < `-c`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml_edit::{Document, TableLike, Value};

use crate::error::{Origin, did_you_mean};
use crate::keys::{self, Known};
use crate::{ConfigError, trust};

mod check;
mod overrides;

use overrides::Override;

/// The system's layer.
const SYSTEM_FILE: &str = "/etc/openinterpreter/config.toml";
/// Folder of a project's own configuration.
const PROJECT_FOLDER: &str = ".openinterpreter";
/// What the name of a profile's file ends with.
const PROFILE_ENDING: &str = ".config.toml";

/// Where to look.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// `INTERPRETER_HOME`.
    pub home: PathBuf,
    /// The working directory of the session.
    pub cwd: PathBuf,
    /// Reads `NAME.config.toml` in the home too.
    pub profile: Option<String>,
    /// `KEY=VALUE`, in order.
    pub overrides: Vec<String>,
    /// Unknown keys in files are errors.
    pub strict: bool,
}

/// Configuration, and what the user should hear of it.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The merged layers.
    pub config: Config,
    /// Unknown keys, ignored keys of projects.
    pub warnings: Vec<String>,
}

/// The merged layers. Values are checked against their kinds; each knows where it came from.
#[derive(Debug, Clone)]
pub struct Config {
    pub(crate) values: Values,
    pub(crate) home: PathBuf,
    pub(crate) cwd: PathBuf,
}

/// Leaves by path.
pub(crate) type Values = BTreeMap<Vec<String>, Leaf>;

/// A value with its origin.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    pub value: Value,
    pub origin: Origin,
}

impl Config {
    /// Reads and merges all layers.
    ///
    /// # Errors
    /// For a file that cannot be read or parsed, a value of the wrong kind, and an override of an unknown key.
    pub fn load(options: &LoadOptions) -> Result<Loaded, ConfigError> {
        let mut loader = Loader {
            values: Values::new(),
            warnings: Vec::new(),
            strict: options.strict,
            profile: options.profile.clone(),
        };
        loader.file(Path::new(SYSTEM_FILE), Source::User)?;
        loader.file(&options.home.join("config.toml"), Source::User)?;
        if let Some(profile) = &options.profile {
            loader.file(&profile_file(&options.home, profile)?, Source::User)?;
        }
        let config = Self {
            values: loader.values.clone(),
            home: options.home.clone(),
            cwd: options.cwd.clone(),
        };
        if config.trust() == Some(trust::Trust::Trusted) {
            for folder in config.project_folders() {
                let file = folder.join(PROJECT_FOLDER).join("config.toml");
                loader.file(&file, Source::Project)?;
            }
        }
        for text in &options.overrides {
            loader.override_with(text)?;
        }
        let Loader {
            values, warnings, ..
        } = loader;
        Ok(Loaded {
            config: Self { values, ..config },
            warnings,
        })
    }

    /// What the user decided about the working directory, its project, or the repository of its worktree.
    #[must_use]
    pub fn trust(&self) -> Option<trust::Trust> {
        trust::look_up(&self.cwd, &self.root_markers(), |path| self.decision(path))
    }

    /// What `[projects."PATH"]` says of exactly this path.
    fn decision(&self, path: &Path) -> Option<trust::Trust> {
        let decided = self.values.iter().find(|(keys, _)| {
            keys.len() == 3
                && keys[0] == "projects"
                && Path::new(&keys[1]) == path
                && keys[2] == "trust_level"
        });
        match decided?.1.value.as_str()? {
            "trusted" => Some(trust::Trust::Trusted),
            _ => Some(trust::Trust::Untrusted),
        }
    }

    /// Folders from the project's root down to the working directory.
    fn project_folders(&self) -> Vec<PathBuf> {
        let root = trust::project_root(&self.cwd, &self.root_markers())
            .unwrap_or_else(|| self.cwd.clone());
        let mut folders: Vec<PathBuf> = self
            .cwd
            .ancestors()
            .take_while(|folder| folder.starts_with(&root))
            .map(Path::to_path_buf)
            .collect();
        folders.reverse();
        folders
    }
}

/// The file of a profile, which must be there.
fn profile_file(home: &Path, name: &str) -> Result<PathBuf, ConfigError> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(
            ConfigError::missing(format!("\"{name}\" is not the name of a profile"))
                .hint("a profile is a file NAME.config.toml in the home directory"),
        );
    }
    let path = home.join(format!("{name}{PROFILE_ENDING}"));
    if path.exists() {
        return Ok(path);
    }
    let there = profile_names(home);
    let hint = match did_you_mean(name, there.iter().map(String::as_str)) {
        Some(hint) => hint,
        None if there.is_empty() => "there are no profiles yet: create that file".to_owned(),
        None => format!("there are: {}", there.join(", ")),
    };
    let error = ConfigError::missing(format!(
        "there is no profile \"{name}\": {} is missing",
        path.display()
    ));
    Err(error.hint(hint))
}

/// The files of profiles in the home directory.
pub(crate) fn profile_files(home: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(home).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().ends_with(PROFILE_ENDING))
    })
}

/// Names of the profiles in the home directory, sorted.
fn profile_names(home: &Path) -> Vec<String> {
    let mut names: Vec<String> = profile_files(home)
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?;
            Some(name.strip_suffix(PROFILE_ENDING)?.to_owned())
        })
        .collect();
    names.sort();
    names
}

/// Text of a layer's file; `None` where there is none.
fn read(path: &Path) -> Result<Option<String>, ConfigError> {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    let whole = Origin::File {
        path: path.to_path_buf(),
        at: None,
    };
    let unreadable =
        |error: std::io::Error| ConfigError::at(&whole, format!("cannot be read: {error}"));
    let meta = match path.metadata() {
        Ok(meta) => meta,
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    // Reading a fifo would wait for a writer.
    if !meta.is_file() {
        return Err(ConfigError::at(&whole, "is not a regular file").hint("put a TOML file there"));
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(&error.as_bytes()[..valid]).into_owned();
        let origin = Origin::File {
            path: path.to_path_buf(),
            at: Some(position(without_bom(&before), usize::MAX)),
        };
        ConfigError::at(&origin, "not valid UTF-8").hint("save the file as UTF-8")
    })?;
    Ok(Some(without_bom(&text).to_owned()))
}

fn without_bom(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Whose file it is: a project's may not set everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    User,
    Project,
}

struct Loader {
    values: Values,
    warnings: Vec<String>,
    strict: bool,
    /// `--profile`
    profile: Option<String>,
}

impl Loader {
    /// Reads a file into the values, if it is there.
    fn file(&mut self, path: &Path, source: Source) -> Result<(), ConfigError> {
        let Some(text) = read(path)? else {
            return Ok(());
        };
        let origin = |offset: Option<usize>| Origin::File {
            path: path.to_path_buf(),
            at: offset.map(|offset| position(&text, offset)),
        };
        let document = Document::parse(text.as_str()).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let message = error.message().trim().replace('\n', ", ");
            ConfigError::at(&origin(Some(start)), format!("not valid TOML: {message}"))
        })?;
        let mut found = Vec::new();
        flatten(document.as_table(), &mut Vec::new(), &mut found);
        let mut refused = Vec::new();
        for (keys, value, offset) in found {
            let origin = origin(offset);
            if source == Source::Project && keys::is_not_for_projects(&keys[0]) {
                if !refused.contains(&keys[0]) {
                    self.warnings.push(format!(
                        "{origin}: a project may not set \"{}\"; ignored",
                        keys[0]
                    ));
                    refused.push(keys[0].clone());
                }
                continue;
            }
            self.take(keys, value, origin, self.strict)?;
        }
        Ok(())
    }

    fn override_with(&mut self, text: &str) -> Result<(), ConfigError> {
        let Override {
            keys,
            value,
            origin,
        } = overrides::parse(text)?;
        let mut found = Vec::new();
        match value {
            Value::InlineTable(table) if keys::is_table(&keys) => {
                flatten(&table, &mut keys.clone(), &mut found);
            }
            value => found.push((keys, value, None)),
        }
        for (keys, value, _) in found {
            self.take(keys, value, origin.clone(), true)?;
        }
        Ok(())
    }

    fn take(
        &mut self,
        keys: Vec<String>,
        value: Value,
        origin: Origin,
        strict: bool,
    ) -> Result<(), ConfigError> {
        let kind = match keys::look_up(&keys) {
            Known::Key(kind) => kind,
            Known::Later => return Ok(()),
            Known::Unknown => {
                let error = check::unknown(&keys, &origin);
                if strict || keys::is_table(&keys) || self.is_wanted_profile(&keys, &value) {
                    return Err(error);
                }
                self.warnings.push(error.to_string());
                return Ok(());
            }
        };
        check::value(&keys, kind, &value, &origin)?;
        check::variable(&keys, &origin)?;
        self.values.insert(keys, Leaf { value, origin });
        Ok(())
    }

    /// Whether it is the old form of just the profile that the user asks for: leaving it out would be half done.
    fn is_wanted_profile(&self, keys: &[String], value: &Value) -> bool {
        let wanted = self.profile.as_deref();
        let table = value.as_inline_table();
        keys[0] == "profiles"
            && wanted.is_some_and(|name| table.is_some_and(|table| table.contains_key(name)))
    }
}

/// Line and column of a byte offset, from 1; columns count characters.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text[..end];
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (line, before[start..].chars().count() + 1)
}

/// A value of a file with its path, and the offset of its key where known.
type Found = (Vec<String>, Value, Option<usize>);

/// All values below a table. A table where no table belongs is a value too: the check says what is wrong with it.
fn flatten(table: &dyn TableLike, path: &mut Vec<String>, out: &mut Vec<Found>) {
    for (name, item) in table.iter() {
        path.push(name.to_owned());
        match item.as_table_like() {
            Some(inner) if keys::is_table(path) => flatten(inner, path, out),
            _ => {
                let offset = table
                    .get_key_value(name)
                    .and_then(|(key, _)| key.span())
                    .map(|span| span.start);
                if let Ok(value) = item.clone().into_value() {
                    out.push((path.clone(), value, offset));
                }
            }
        }
        path.pop();
    }
}

#[cfg(test)]
mod tests;
