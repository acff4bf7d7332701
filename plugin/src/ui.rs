//! Where a command writes. The answer goes to stdout, everything else to stderr; colours only where
//! somebody sees them.

use std::io::{self, Write};

use anstream::AutoStream;

use crate::cli::{Format, Global};
use crate::exit::Failure;

/// The streams of one command.
pub struct Ui {
    /// The answer only.
    pub out: Box<dyn Write>,
    /// Progress, warnings, hints.
    pub err: Box<dyn Write>,
    /// How the answer is written.
    pub format: Format,
}

impl Ui {
    /// The streams of this process.
    #[must_use]
    pub fn new(global: &Global) -> Self {
        let choice = global.color.choice();
        let out = AutoStream::new(
            io::stdout(),
            choice.unwrap_or_else(|| AutoStream::choice(&io::stdout())),
        );
        let err = AutoStream::new(
            io::stderr(),
            choice.unwrap_or_else(|| AutoStream::choice(&io::stderr())),
        );
        Self { out: Box::new(out), err: Box::new(err), format: global.output }
    }

    /// Tells why there is no answer: for people on stderr; where a document was asked for, as that.
    pub fn failure(&mut self, failure: &Failure) {
        // A stream that is closed has no reader who could be told.
        let _ = writeln!(self.err, "error: {}", failure.message);
        for cause in &failure.causes {
            let _ = writeln!(self.err, "  because: {cause}");
        }
        if !failure.hint.is_empty() {
            let _ = writeln!(self.err, "  do: {}", failure.hint);
        }
    }
}
