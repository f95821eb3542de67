//! The terminal of the view: the alternate screen of stderr, without echo of what is typed.
//!
//! It is restored at the end of the view, by a panic, by the second Ctrl-C, and while the process is stopped by Ctrl-Z.

use std::io::{self, IsTerminal, Stderr, stderr, stdin};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use ratatui::{Frame, Terminal};
use rustix::termios::{self, LocalModes, OptionalActions, Termios};

/// Whether stderr is a terminal that this process may draw on: its own, in the foreground, with cursor movement.
pub(super) fn is_usable() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|name| name.is_empty() || name == "dumb");
    let is_foreground =
        || termios::tcgetpgrp(stderr()).is_ok_and(|group| group == rustix::process::getpgrp());
    stderr().is_terminal() && !is_dumb && is_foreground()
}

/// The alternate screen, until it is dropped.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stderr>>,
}

static STATE: Mutex<State> = Mutex::new(State::Left);

/// The terminal showed something else since the last drawing.
static HAS_CHANGED: AtomicBool = AtomicBool::new(false);

/// What the terminal is to the view.
enum State {
    /// As the shell left it. A view that is still there has to end: its process panics.
    Left,
    /// The same for a while, in which nothing is drawn.
    Suspended,
    /// The view is on it. The modes of standard input before; `None`: they were not changed.
    Entered(Option<Termios>),
}

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |panicked| {
                // The message would be lost with the alternate screen.
                restore();
                before(panicked);
            }));
        });
        let terminal = Terminal::new(CrosstermBackend::new(stderr()))?;
        enter(&mut state())?;
        Ok(Self { terminal })
    }

    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        match *state() {
            State::Left => return Err(io::Error::other("the terminal was restored")),
            State::Suspended => return Ok(()),
            // Not locked while it draws: a panic there restores the terminal.
            State::Entered(_) => {}
        }
        if HAS_CHANGED.swap(false, Ordering::Relaxed) {
            // Clears as well, without asking the terminal where its cursor is, which not every one answers.
            let size = self.terminal.size()?;
            self.terminal.resize(size.into())?;
        }
        self.terminal.draw(draw).map(drop)
    }

    /// Runs `what` on the terminal's usual screen.
    pub(super) fn suspend<T>(&mut self, what: impl FnOnce() -> T) -> T {
        suspend();
        let result = what();
        resume();
        result
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn enter(state: &mut State) -> io::Result<()> {
    execute!(stderr(), EnterAlternateScreen, Hide)?;
    *state = State::Entered(quieten());
    HAS_CHANGED.store(true, Ordering::Relaxed);
    Ok(())
}

/// Ends the view on the terminal, if there is one. Called on any thread.
pub(crate) fn restore() {
    leave(State::Left);
}

/// Hides the view, if there is one, until [`resume`]. Called on any thread.
pub(crate) fn suspend() {
    leave(State::Suspended);
}

fn leave(then: State) {
    let mut state = state();
    let State::Entered(modes) = &*state else { return };
    if let Some(modes) = modes {
        // Fails only if the terminal is gone, as does the next.
        let _ = termios::tcsetattr(stdin(), OptionalActions::Now, modes);
    }
    let _ = execute!(stderr(), Show, LeaveAlternateScreen);
    *state = then;
}

/// Shows the view again that [`suspend`] has hidden. In the background it stays hidden, and ends.
pub(crate) fn resume() {
    let mut state = state();
    if matches!(*state, State::Suspended) && (!is_usable() || enter(&mut state).is_err()) {
        *state = State::Left;
    }
}

/// Switches the echo of standard input off, so that keys do not show in the view; returns the modes before. Signals
/// such as that of Ctrl-C stay.
fn quieten() -> Option<Termios> {
    let before = termios::tcgetattr(stdin()).ok()?;
    let mut quiet = before.clone();
    quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON);
    termios::tcsetattr(stdin(), OptionalActions::Now, &quiet).ok()?;
    Some(before)
}
