//! The program `image-records`. What it does is in `opensdn_image_records::command_line`.

use std::process::ExitCode;

fn main() -> ExitCode {
    opensdn_image_records::command_line::main()
}
