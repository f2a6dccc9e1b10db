//! The shape of the workspace: who may depend on whom, and under which licences we ship.

use std::collections::BTreeSet;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

/// Licences that may be linked into an Apache-2.0 program without further duties than keeping their notice.
const LICENCES: [&str; 12] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "Unlicense",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "0BSD",
];

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .other_options(["--locked".to_owned()])
        .exec()
        .expect("cargo metadata reads the workspace")
}

/// Where a crate of ours stands in the direction of dependencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layer {
    Messages,
    Config,
    Restart,
    Actor,
    Tui,
    Supervisor,
}

fn layer(metadata: &Metadata, package: &Package) -> Layer {
    let folder = package
        .manifest_path
        .parent()
        .expect("a manifest lies in a folder");
    let folder = folder
        .strip_prefix(&metadata.workspace_root)
        .expect("members lie in the workspace");
    match folder.as_str() {
        "messages" => Layer::Messages,
        "config" => Layer::Config,
        "supervisor/restart" => Layer::Restart,
        "supervisor" => Layer::Supervisor,
        "tui" => Layer::Tui,
        actor if actor.starts_with("actors/") => Layer::Actor,
        other => panic!("{other}: no layer is known for this folder; see DESIGN §10 and AGENTS.md"),
    }
}

/// The crates that restart something, beside the supervisor.
const RESTARTERS: [&str; 3] = [
    "interpreter-tool-executor",
    "interpreter-mcp",
    "interpreter-frontend",
];

fn may_use(from: Layer, from_name: &str, to: Layer) -> bool {
    use Layer::{Actor, Config, Messages, Restart, Supervisor, Tui};
    match (from, to) {
        (Supervisor, _) => to != Supervisor,
        (Config, Messages) | (Actor | Tui, Messages | Config) => true,
        (Actor, Restart) => RESTARTERS.contains(&from_name),
        _ => false,
    }
}

#[test]
fn dependencies_point_in_the_agreed_direction() {
    let metadata = metadata();
    let members: Vec<_> = metadata.workspace_packages();
    let mut wrong = Vec::new();
    for package in &members {
        let from = layer(&metadata, package);
        for dependency in &package.dependencies {
            let Some(to) = members
                .iter()
                .find(|other| other.name.as_str() == dependency.name)
            else {
                continue;
            };
            if !may_use(from, &package.name, layer(&metadata, to)) {
                wrong.push(format!(
                    "{} -> {}: {from:?} crates may not use {:?} crates",
                    package.name,
                    to.name,
                    layer(&metadata, to)
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "arrows in the wrong direction:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn all_members_share_version_edition_and_lints() {
    for package in metadata().workspace_packages() {
        let manifest =
            std::fs::read_to_string(&package.manifest_path).expect("a manifest is readable");
        assert_eq!(package.edition.as_str(), "2024", "{}", package.name);
        assert_eq!(
            package.version.to_string(),
            env!("CARGO_PKG_VERSION"),
            "{}",
            package.name
        );
        // The sandbox states its own, because it alone may use `unsafe`.
        let own = package.name.as_str() == "interpreter-sandbox-process";
        assert!(
            own || manifest.contains("[lints]\nworkspace = true"),
            "{} leaves the lints",
            package.name
        );
    }
}

#[test]
fn unsafe_code_is_allowed_in_the_sandbox_only() {
    let metadata = metadata();
    let root = std::fs::read_to_string(metadata.workspace_root.join("Cargo.toml"))
        .expect("the root manifest");
    assert!(root.contains("unsafe_code = \"forbid\""));
    let aborts = root
        .lines()
        .any(|line| line.trim_start().starts_with("panic"));
    assert!(
        !aborts,
        "supervision is catch_unwind: no profile may abort on panic"
    );
}

#[test]
fn every_dependency_has_a_licence_that_we_can_ship() {
    let metadata = metadata();
    let allowed: BTreeSet<_> = LICENCES.into_iter().collect();
    let shipped = shipped_packages(&metadata);
    assert!(shipped.len() > 50, "the dependency tree was not read");
    let mut refused = Vec::new();
    for package in metadata
        .packages
        .iter()
        .filter(|package| shipped.contains(package.name.as_str()))
    {
        let licence = package
            .license
            .clone()
            .unwrap_or_else(|| "none stated".to_owned());
        let fine = licence.replace('/', " OR ").split(" OR ").any(|choice| {
            choice
                .split(" AND ")
                .all(|part| allowed.contains(part.trim_matches(['(', ')', ' '])))
        });
        if !fine {
            refused.push(format!("{} {}: {licence}", package.name, package.version));
        }
    }
    assert!(
        refused.is_empty(),
        "licences that nobody has agreed to:\n{}",
        refused.join("\n")
    );
}

/// Names of everything that normal dependencies reach from our crates.
fn shipped_packages(metadata: &Metadata) -> BTreeSet<String> {
    let resolve = metadata.resolve.as_ref().expect("cargo metadata resolves");
    let mut open: Vec<_> = metadata.workspace_members.clone();
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !seen.insert(id.clone()) {
            continue;
        }
        let node = resolve
            .nodes
            .iter()
            .find(|node| node.id == id)
            .expect("each package has a node");
        let normal = node.deps.iter().filter(|dep| {
            dep.dep_kinds
                .iter()
                .any(|kind| kind.kind == DependencyKind::Normal)
        });
        open.extend(normal.map(|dep| dep.pkg.clone()));
    }
    metadata
        .packages
        .iter()
        .filter(|package| seen.contains(&package.id))
        .map(|package| package.name.to_string())
        .collect()
}
