//! The `i` program: `interpreter` under a short name.

fn main() -> std::process::ExitCode {
    open_interpreter::cli::main()
}
