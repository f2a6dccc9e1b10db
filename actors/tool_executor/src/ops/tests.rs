//! Tests of the file operations, through [`serve`] as the worker runs them.

mod cases;
mod edit;
mod files;
mod patch;
mod search;

use std::fs;
use std::path::{Path, PathBuf};

use interpreter_messages::tool::{
    Edit, FileChange, Operation, Patch, Read, Replacement, TextOutput, ToolOutput, Write,
};
use interpreter_messages::worker::{FileOrder, FileReply, FileRequest};
use tempfile::TempDir;

use crate::file_worker::serve;

/// A scratch workspace.
pub(super) struct Space {
    dir: TempDir,
    pub seen: Vec<(PathBuf, Option<String>)>,
}

impl Space {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a scratch directory");
        Self {
            dir,
            seen: Vec::new(),
        }
    }

    /// With symbolic links resolved, as the operations report some paths that way.
    pub fn root(&self) -> PathBuf {
        fs::canonicalize(self.dir.path()).expect("the scratch directory")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    pub fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("parents");
        fs::write(&path, bytes).expect("a file");
        path
    }

    pub fn get(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("a file")
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.get(name)).expect("text")
    }

    pub fn ask(&self, order: FileOrder) -> FileReply {
        serve(FileRequest {
            cwd: self.root(),
            order,
        })
    }

    pub fn look(&mut self, operation: Operation) -> Result<ToolOutput, String> {
        match self.ask(FileOrder::Look { operation }) {
            FileReply::Done { output, seen } => {
                self.seen.extend(seen);
                Ok(output)
            }
            FileReply::Failed { error, .. } => Err(error),
            other => panic!("a look gave {other:?}"),
        }
    }

    pub fn read(&mut self, name: &str) -> Result<TextOutput, String> {
        self.read_part(name, None, None)
    }

    pub fn read_part(
        &mut self,
        name: &str,
        offset: Option<u64>,
        limit: Option<u64>,
    ) -> Result<TextOutput, String> {
        let path = PathBuf::from(name);
        match self.look(Operation::Read(Read {
            path,
            offset,
            limit,
        }))? {
            ToolOutput::Text(text) => Ok(text),
            other => panic!("a read gave {other:?}"),
        }
    }

    /// Prepares and applies.
    pub fn change(&mut self, operation: Operation) -> Result<Vec<FileChange>, String> {
        let changes = self.prepare(&operation)?;
        self.apply(operation, changes)
    }

    pub fn prepare(&self, operation: &Operation) -> Result<Vec<FileChange>, String> {
        let operation = operation.clone();
        let seen = self.seen.clone();
        match self.ask(FileOrder::Prepare { operation, seen }) {
            FileReply::Prepared { changes } => Ok(changes),
            FileReply::Failed { error, .. } => Err(error),
            other => panic!("a preparation gave {other:?}"),
        }
    }

    pub fn apply(
        &mut self,
        operation: Operation,
        changes: Vec<FileChange>,
    ) -> Result<Vec<FileChange>, String> {
        match self.ask(FileOrder::Apply { operation, changes }) {
            FileReply::Done {
                output: ToolOutput::Changed { changes },
                seen,
            } => {
                for (path, hash) in seen {
                    self.seen.retain(|(other, _)| *other != path);
                    self.seen.push((path, hash));
                }
                Ok(changes)
            }
            FileReply::Failed { error, .. } => Err(error),
            other => panic!("a change gave {other:?}"),
        }
    }

    /// Names below the root, so that left-over temporary files are seen.
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        collect(&self.root(), &self.root(), &mut names);
        names.sort();
        names
    }
}

fn collect(root: &Path, at: &Path, names: &mut Vec<String>) {
    for entry in fs::read_dir(at).expect("a directory").flatten() {
        let path = entry.path();
        let name = path.strip_prefix(root).expect("below the root");
        names.push(name.display().to_string());
        if entry.file_type().expect("a type").is_dir() {
            collect(root, &path, names);
        }
    }
}

pub(super) fn write(name: &str, content: &str) -> Operation {
    Operation::Write(Write {
        path: name.into(),
        content: content.to_owned(),
    })
}

pub(super) fn replacement(old: &str, new: &str) -> Replacement {
    Replacement {
        old: old.to_owned(),
        new: new.to_owned(),
        all: false,
    }
}

pub(super) fn edit(name: &str, old: &str, new: &str) -> Operation {
    Operation::Edit(Edit {
        path: name.into(),
        replacements: vec![replacement(old, new)],
    })
}

pub(super) fn patch(patch: &str) -> Operation {
    Operation::Patch(Patch {
        patch: patch.to_owned(),
        workdir: None,
    })
}
