//! The `interpreter` program.

fn main() -> std::process::ExitCode {
    open_interpreter::cli::main()
}
