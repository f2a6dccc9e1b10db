//! What tests over the whole program share: a scratch home and project, the real binary, a scripted model server,
//! the tree in this process, and a look at what processes are left.

pub mod processes;
pub mod program;
pub mod server;
pub mod tree;
