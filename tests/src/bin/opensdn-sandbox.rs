//! The program `opensdn-sandbox`: see `opensdn_tests::command_line`.

fn main() {}
