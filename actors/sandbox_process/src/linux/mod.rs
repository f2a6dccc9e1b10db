//! The Linux boundary: namespaces for the view, Landlock behind it, seccomp for what neither sees. Everything in here
//! but `sys` runs in the init's role, in single-threaded processes.

pub mod command;
pub mod confine;
pub mod init;
pub mod seccomp;
pub mod sys;
pub mod view;
