//! Where a command writes: the only place that touches the standard streams. The answer goes to
//! stdout, everything else to stderr; colours only on a terminal. What the answer is made
//! of is not known here.

use std::io::{self, BufRead, BufWriter, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use serde::Serialize;

use crate::cli::{Global, Progress};
use crate::exit::{Exit, Failure};
use crate::output::{Answer, DocumentFormat, ObjectsFormat, json_line};
use crate::ui::harmless::HarmlessWriter;
use crate::ui::record::{Message, Record, now};

mod harmless;
mod layout;
mod record;
mod trace;

pub use layout::style;
pub(crate) use opensdn_validate::report::one_line;
use opensdn_validate::report::printable;
pub use opensdn_validate::report::{Layout, wrap};

/// The streams of one command.
pub struct Ui {
    out: Box<dyn Write>,
    err: Box<dyn Write>,
    document_format: Option<DocumentFormat>,
    layout: Layout,
    progress: Progress,
    /// Whether the changing line has text, which has to be wiped before anything else is written.
    line_open: bool,
    quiet: bool,
    verbose: u8,
    hints: bool,
    /// Whether the answer, or a part of it, has been written.
    answered: bool,
    /// Whether the reader of the answer has gone.
    closed: bool,
}

impl Ui {
    /// The streams of this process. The answer is a document in `document_format`, or text.
    #[must_use]
    pub fn new(global: &Global, document_format: Option<DocumentFormat>) -> Self {
        let progress = match global.progress {
            _ if global.quiet => Progress::None,
            Progress::Auto if io::stderr().is_terminal() => Progress::Tty,
            Progress::Auto => Progress::Plain,
            stated => stated,
        };
        let mut ui = Self::plain(global.color.choice(), document_format);
        ui.progress = progress;
        ui.quiet = global.quiet;
        ui.verbose = global.verbose;
        if global.verbose > 1 {
            trace::requests();
        }
        ui.hints = !global.no_hints && !global.quiet;
        ui
    }

    /// The streams before the command line has been understood.
    pub(crate) fn plain(color: ColorChoice, document_format: Option<DocumentFormat>) -> Self {
        Self {
            out: Box::new(BufWriter::new(AutoStream::new(io::stdout(), color))),
            err: Box::new(AutoStream::new(io::stderr(), color)),
            document_format,
            layout: layout::of_terminal(),
            progress: Progress::None,
            line_open: false,
            quiet: false,
            verbose: 0,
            hints: true,
            answered: false,
            closed: false,
        }
    }

    /// How wide and with which characters text is written.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Gives the answer: as a document where one was asked for, else as `human` writes it. What a terminal
    /// would obey is shown as what it is, but for styles.
    ///
    /// # Errors
    /// Standard output cannot be written, for another reason than that its reader has gone.
    pub fn answer<A: Answer>(
        &mut self,
        answer: &A,
        human: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        match self.document_format {
            Some(document_format) => self.write(|out| document_format.write(answer, out)),
            None => self.write(|out| {
                let mut out = HarmlessWriter::new(out);
                human(&mut out)?;
                out.flush()
            }),
        }
    }

    /// Gives an answer about objects of a cluster, or their names where these were asked for.
    ///
    /// # Errors
    /// As of [`Self::write`].
    pub(crate) fn answer_objects<A: Answer>(
        &mut self,
        format: ObjectsFormat,
        answer: &A,
        names: impl IntoIterator<Item = String>,
        human: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        if format != ObjectsFormat::Name {
            return self.answer(answer, human);
        }
        self.show(|out| names.into_iter().try_for_each(|name| writeln!(out, "{name}")))
    }

    /// Writes a part of an answer that is made of what others wrote, such as a log: only what a terminal shows of it.
    ///
    /// # Errors
    /// As of [`Self::write`].
    pub fn show(
        &mut self,
        text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        self.write(|out| {
            let mut out = HarmlessWriter::new(out);
            text(&mut out)?;
            out.flush()
        })
    }

    /// Writes to standard output as it is: an answer whose form is not ours, such as SARIF or a
    /// shell's script.
    ///
    /// # Errors
    /// Standard output cannot be written, for another reason than that its reader has gone.
    pub fn write(
        &mut self,
        text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        self.wipe();
        self.answered = true;
        if self.closed {
            return Ok(());
        }
        match text(&mut self.out).and_then(|()| self.out.flush()) {
            Ok(()) => Ok(()),
            // `| head` has read enough. That is no failure, and the exit code still gives the answer.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            Err(error) => {
                self.closed = true;
                let message = "the answer cannot be written to standard output";
                let hint = "look at where the output goes: is the disk full? What the command has done is done; only its \
                            answer is missing";
                Err(Failure::new(Exit::Usage, "unwritable-output", message, hint).because(&error))
            }
        }
    }

    /// Whether an answer may be drawn in the place of the one before.
    #[must_use]
    pub fn redraws(&self) -> bool {
        io::stdout().is_terminal() && !matches!(self.progress, Progress::Plain)
    }

    /// Whether the reader of the answer has gone.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Clears the terminal for the next answer.
    ///
    /// # Errors
    /// As of [`Self::write`].
    pub fn clear(&mut self) -> Result<(), Failure> {
        self.write(|out| write!(out, "\x1b[H\x1b[2J"))
    }

    /// Something that is probably not as it was meant, on stderr.
    pub fn warn(&mut self, text: &str) {
        if !self.quiet {
            self.tell(style::WARNING, "warning", text);
        }
    }

    /// What to do next, on stderr; not with `--no-hints`.
    pub fn hint(&mut self, text: &str) {
        if self.hints {
            self.tell(style::HINT, "hint", text);
        }
    }

    /// What has been done, on stderr: what people want to know who do not read the answer.
    pub fn note(&mut self, text: &str) {
        if !self.quiet {
            self.line(text);
        }
    }

    /// A step's detail, on stderr, with `-v` only.
    pub fn detail(&mut self, text: &str) {
        if self.verbose > 0 {
            self.line(text);
        }
    }

    /// What has happened with what the command watches, on stderr: a line with its time, or a JSON object with the
    /// fields of the event.
    pub(crate) fn event(&mut self, event: &impl Serialize, text: &str) {
        match self.progress {
            Progress::None => {}
            Progress::Json => self.record("event", event),
            _ => self.line(&format!("{}  {}", now(), one_line(text))),
        }
    }

    /// Whether progress is a line that changes.
    pub(crate) fn draws_progress(&self) -> bool {
        self.progress == Progress::Tty
    }

    /// What is being done now, on stderr: a changing line on a terminal, else a line of its own.
    pub fn progress(&mut self, text: &str) {
        match self.progress {
            Progress::None => {}
            Progress::Json => self.record("progress", &Message { message: text }),
            Progress::Tty => {
                self.wipe();
                let text = layout::shortened(text, self.layout.width);
                // Progress is not missed where stderr is gone.
                let _ = write!(self.err, "{}", one_line(&text)).and_then(|()| self.err.flush());
                self.line_open = true;
            }
            Progress::Auto | Progress::Plain => self.line(text),
        }
    }

    /// Asks before something is changed. The default is no.
    ///
    /// # Errors
    /// The user said no, or there is no user to ask: without a terminal a command must not wait.
    pub fn confirm(&mut self, question: &str) -> Result<(), Failure> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            let message = format!("{question} needs a yes, and there is no terminal to ask on");
            return Err(Failure::new(Exit::Refused, "not-confirmed", message, "add --yes"));
        }
        self.question(question);
        let mut reply = String::new();
        let read = io::stdin().lock().read_line(&mut reply);
        if read.is_ok() && is_yes(&reply) {
            return Ok(());
        }
        Err(Failure::new(Exit::Refused, "not-confirmed", "nothing has been changed", ""))
    }

    /// Whether there is a user who reads questions and can answer them.
    #[must_use]
    pub fn can_ask(&self) -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Writes a question whose answer is yes or no; who asks reads the answer.
    pub(crate) fn question(&mut self, question: &str) {
        self.wipe();
        // As in a warning: what cannot be written is not read either.
        let _ = write!(self.err, "{}? [y/N] ", one_line(question)).and_then(|()| self.err.flush());
    }

    /// Asks for a name before data is deleted, which a yes in a hurry must not do.
    ///
    /// # Errors
    /// The user gave another one, or there is no user to ask.
    pub fn confirm_by_name(&mut self, name: &str, flag: &str) -> Result<(), Failure> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            let message = format!("{flag} deletes data, and there is no terminal to ask on");
            let hint = format!("add --confirm {name}");
            return Err(Failure::new(Exit::Refused, "not-confirmed", message, hint));
        }
        self.wipe();
        let _ = write!(self.err, "Type {} to continue: ", one_line(name))
            .and_then(|()| self.err.flush());
        let mut reply = String::new();
        match io::stdin().lock().read_line(&mut reply) {
            Ok(_) if reply.trim() == name => Ok(()),
            _ => Err(Failure::new(Exit::Refused, "not-confirmed", "nothing has been changed", "")),
        }
    }

    /// Reports why there is no answer: on stderr, and as the document where one was asked for.
    pub fn failure(&mut self, failure: &Failure) {
        if self.progress == Progress::Json {
            self.record("error", failure);
        } else {
            self.failure_in_words(failure);
        }
        // A part of an answer followed by an error would be two documents.
        if self.document_format.is_some() && !self.answered {
            // That stdout is gone as well cannot be reported.
            let _ = self.answer(failure, |_| Ok(()));
        }
    }

    fn failure_in_words(&mut self, failure: &Failure) {
        // What a cluster says, lines and all, is quoted in one line: a line of its own could look like one of ours.
        self.tell(style::ERROR, "error", &one_line(&failure.message));
        for cause in &failure.causes {
            self.line(&format!("  because: {}", one_line(cause)));
        }
        if !failure.hint.is_empty() {
            self.line(&format!("  do: {}", one_line(&failure.hint)));
        }
    }

    fn tell(&mut self, style: anstyle::Style, word: &str, text: &str) {
        match self.progress {
            Progress::Json => self.record(word, &Message { message: text }),
            _ => self.write_line(&format!("{style}{word}{style:#}: "), text),
        }
    }

    fn line(&mut self, text: &str) {
        match self.progress {
            Progress::Json => self.record("note", &Message { message: text }),
            _ => self.write_line("", text),
        }
    }

    /// A JSON object in a line of its own: all of stderr is of these where progress is for programs.
    fn record(&mut self, level: &str, fields: &impl Serialize) {
        // What is written here are texts and numbers, which JSON has.
        if let Ok(line) = json_line(&Record { time: now(), level, fields }) {
            // Where stderr is gone there is nowhere to report to.
            let _ = writeln!(self.err, "{line}");
        }
    }

    /// What is quoted of others has no style of its own, and makes no line of its own: these could pass for ours.
    fn write_line(&mut self, label: &str, text: &str) {
        self.wipe();
        let text = printable(text).replace(['\n', '\r'], " ");
        // Where stderr is gone there is nowhere to report to.
        let _ = writeln!(self.err, "{label}{text}");
    }

    fn wipe(&mut self) {
        if self.line_open {
            self.line_open = false;
            // Only ever reached on a terminal; blanks instead of an escape work on a dumb one too.
            let blanks = " ".repeat(self.layout.width.saturating_sub(1));
            let _ = write!(self.err, "\r{blanks}\r").and_then(|()| self.err.flush());
        }
    }
}

impl Drop for Ui {
    fn drop(&mut self) {
        self.wipe();
    }
}

/// Whether the reply to a question is a yes.
pub(crate) fn is_yes(reply: &str) -> bool {
    matches!(reply.trim(), "y" | "Y" | "yes" | "Yes")
}
