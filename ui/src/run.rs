//! The loop: messages in, effects out, a frame when something changed. Everything slow happens on other threads.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{Event, EventStream};
use futures_util::StreamExt as _;
use nix::sys::signal::{Signal, raise};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep_until};
use yard_client::Place;
use yard_engine::Timestamp;

use crate::console::{Console, Known, Mode};
use crate::errands::{Ym, copy};
use crate::feed::{Feed, read_past};
use crate::forecasts::Forecasts;
use crate::layers::Layer;
use crate::logs::Follower;
use crate::look::Look;
use crate::msg::{Effect, Entering, Leaving, LogNews, Msg, News};
use crate::oracle::Oracle;
use crate::terminal::{self, Guard, Screen};
use crate::town::{Link, Town};
use crate::{prepare, render, update};

/// Between two frames.
const FRAME: Duration = Duration::from_millis(33);
/// Between two ticks of the clocks on the screen.
const TICK: Duration = Duration::from_millis(250);
/// While a replay plays.
const PLAYING: Duration = Duration::from_millis(60);

/// What the console needs to know before it starts.
pub struct Setup {
    /// The town's directory, or one that is no town; the directory we are in if the town is elsewhere.
    pub town: PathBuf,
    /// Where the town is.
    pub place: Place,
    /// The words that name the town on a command line.
    pub naming: Vec<OsString>,
    /// There is no town there.
    pub homeless: bool,
    /// Serves the town from this process, because nobody else does. Run on a thread of its own: taking a large town over
    /// takes a while, and the first frame does not wait for it.
    pub serve: Option<Box<dyn FnOnce() -> Result<(), String> + Send>>,
    /// How everything looks.
    pub look: Look,
    /// The program that carries out commands.
    pub program: PathBuf,
    /// The commands there are.
    pub commands: Vec<Known>,
    /// What time it is.
    pub now: fn() -> Timestamp,
    /// Said at the beginning.
    pub greeting: Option<String>,
}

/// How the console was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// By the user.
    By(Leaving),
    /// To go to a town.
    For(Entering),
    /// Somebody ended it: a signal, or the terminal is gone.
    Ended,
}

/// Runs the console until it is left. The terminal is as before when this returns.
pub fn run(setup: Setup) -> std::io::Result<Left> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Running::new(setup)?.run())
}

/// What runs beside the console.
struct Helpers {
    _feed: Feed,
    oracle: Arc<Oracle>,
    follower: Follower,
}

struct Running {
    console: Console,
    now: fn() -> Timestamp,
    ym: Ym,
    town: PathBuf,
    messages: UnboundedReceiver<Msg>,
    sender: UnboundedSender<Msg>,
    helpers: Option<Helpers>,
    left: Option<Left>,
    redraw: bool,
}

impl Running {
    fn new(setup: Setup) -> std::io::Result<Self> {
        let (sender, messages) = unbounded_channel();
        let now = (setup.now)();
        let size = crossterm::terminal::size().unwrap_or((80, 24));
        let mut console = Console::new(Town::unknown(setup.town.clone()), setup.look, now, size);
        console.homeless = setup.homeless;
        console.embedded = setup.serve.is_some();
        console.commands = setup.commands;
        if let Some((name, host)) = elsewhere(&setup.place) {
            console.town.name = name;
            console.elsewhere = Some(host);
        }
        if let Some(greeting) = setup.greeting {
            console.say(greeting);
        }
        let mut helpers = None;
        if setup.homeless {
            // A directory without a town is lost to nobody.
            console.town.link = Link::Loading { read: 0, of: 0 };
            console.layers.push(Layer::Menu(crate::update::welcome(&console)));
        } else {
            helpers = Some(Helpers::start(&setup.place, setup.now, &sender)?);
        }
        if let Some(serve) = setup.serve {
            let sender = sender.clone();
            std::thread::Builder::new().name("ym-open".to_owned()).spawn(move || {
                let _ = sender.send(Msg::Serving(serve()));
            })?;
        }
        let ym = Ym { program: setup.program, naming: setup.naming, place: setup.place };
        let (now, town) = (setup.now, setup.town);
        Ok(Self { console, now, ym, town, messages, sender, helpers, left: None, redraw: true })
    }

    async fn run(mut self) -> std::io::Result<Left> {
        let mut screen = terminal::take(self.console.mouse)?;
        let _guard = Guard;
        let mut input = Some(EventStream::new());
        let mut signals = Signals::new()?;
        let mut next_tick = Instant::now() + TICK;
        let mut last_frame = Instant::now();
        self.draw(&mut screen)?;
        loop {
            let due = last_frame + FRAME;
            let waits = input.get_or_insert_with(EventStream::new);
            tokio::select! {
                event = waits.next() => match event {
                    Some(Ok(event)) => self.take_event(event),
                    // The terminal is gone.
                    Some(Err(_)) | None => self.left = Some(Left::Ended),
                },
                message = self.messages.recv() => {
                    if let Some(message) = message {
                        self.take(message);
                    }
                    // Much may have come at once; a frame for each would be a waste.
                    for _ in 0..10_000 {
                        match self.messages.try_recv() {
                            Ok(message) => self.take(message),
                            Err(_) => break,
                        }
                    }
                }
                () = sleep_until(next_tick) => {
                    let playing = matches!(&self.console.mode, Mode::Replay(replay) if replay.playing);
                    next_tick = Instant::now() + if playing { PLAYING } else { TICK };
                    let before = self.console.now.as_millis() / 1000;
                    let now = (self.now)();
                    self.perform(Msg::Tick(now));
                    self.redraw |= playing || now.as_millis() / 1000 != before;
                }
                () = sleep_until(due), if self.redraw && Instant::now() < due => {}
                ended = signals.recv() => {
                    if ended {
                        self.left = Some(Left::Ended);
                    }
                }
            }
            if let Some(left) = self.left {
                return Ok(left);
            }
            if self.console.wants_outside() {
                input = None;
                self.go_outside(&mut screen)?;
            }
            if self.redraw && Instant::now() >= due {
                self.draw(&mut screen)?;
                last_frame = Instant::now();
            }
        }
    }

    fn draw(&mut self, screen: &mut Screen) -> std::io::Result<()> {
        let effects = prepare(&mut self.console);
        self.carry_out(effects);
        let console = &mut self.console;
        screen.draw(|frame| {
            // The terminal may have changed since it last said so.
            let area = frame.area();
            console.size = (area.width, area.height);
            render(console, frame.buffer_mut());
        })?;
        self.redraw = false;
        Ok(())
    }

    fn take_event(&mut self, event: Event) {
        panic_if_wished(&event);
        let message = match event {
            Event::Key(key) => Msg::Key(key),
            Event::Mouse(event) => Msg::Mouse(event),
            Event::Paste(text) => Msg::Paste(text),
            Event::Resize(width, height) => Msg::Resize(width, height),
            Event::FocusGained | Event::FocusLost => return,
        };
        self.perform(message);
        self.redraw = true;
    }

    fn take(&mut self, message: Msg) {
        if let (Msg::Town(news), Some(helpers)) = (&message, &self.helpers) {
            helpers.pass_on(news);
        }
        self.perform(message);
        self.redraw = true;
    }

    fn perform(&mut self, message: Msg) {
        let effects = update(&mut self.console, message);
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.one(effect);
        }
    }

    fn one(&mut self, effect: Effect) {
        match effect {
            Effect::Run { lines, .. } if lines.is_empty() => {}
            Effect::Run { lines, show } => {
                self.on_a_thread(move |ym| Msg::Ran { lines: ym.run(lines), show });
            }
            Effect::Stage { targets, file } => self.on_a_thread(move |ym| ym.stage(targets, file.as_deref())),
            Effect::FollowLog { bead, attempts } => {
                if let Some(helpers) = &self.helpers {
                    helpers.follower.follow(bead, attempts);
                }
            }
            Effect::Forecast(wanted) => {
                if let Some(helpers) = &self.helpers {
                    helpers.oracle.want(wanted);
                }
            }
            Effect::ReadHistory => {
                self.on_a_thread(move |ym| match read_past(&ym.place) {
                    Ok((beginning, events)) => Msg::History(Box::new(beginning), events),
                    Err(why) => Msg::NoHistory(why),
                });
            }
            Effect::Copy { what, text } => {
                let copied = copy(&self.ym.place, &what, &text);
                self.perform(Msg::Copied(copied));
            }
            Effect::Mouse(ours) => {
                let _ = terminal::mouse(ours);
            }
            Effect::Bell => {
                let _ = crossterm::execute!(std::io::stdout(), crossterm::style::Print("\u{7}"));
            }
            Effect::Suspend => self.console.outside = Some(crate::console::Outside::Shell),
            Effect::Redraw => self.console.outside = Some(crate::console::Outside::Redraw),
            Effect::Outside { argv, dir } => {
                self.console.outside = Some(crate::console::Outside::Program { argv, dir });
            }
            Effect::Quit(leaving) => self.left = Some(Left::By(leaving)),
            Effect::Enter(entering) => self.left = Some(Left::For(entering)),
        }
    }

    fn on_a_thread(&self, work: impl FnOnce(&Ym) -> Msg + Send + 'static) {
        let (ym, sender) = (self.ym.clone(), self.sender.clone());
        let thread = std::thread::Builder::new().name("ym-errand".to_owned());
        let started = thread.spawn(move || {
            let _ = sender.send(work(&ym));
        });
        if let Err(error) = started {
            let _ = self.sender.send(Msg::Say { text: format!("cannot start a thread: {error}"), bad: true });
        }
    }

    /// Gives the terminal away for a while: to the shell we came from, or to a program.
    fn go_outside(&mut self, screen: &mut Screen) -> std::io::Result<()> {
        use crate::console::Outside;
        match self.console.outside.take() {
            None => return Ok(()),
            Some(Outside::Redraw) => {}
            Some(Outside::Shell) => {
                terminal::give_back();
                if self.console.embedded {
                    let _ = writeln!(
                        std::io::stderr(),
                        "ym: the town stands still until you return (fg); D in the console hands it to a daemon"
                    );
                }
                // Stops this process; whoever brings it to the front again lets it go on from here.
                raise(Signal::SIGTSTP)?;
                terminal::enter(self.console.mouse)?;
            }
            Some(Outside::Program { argv, dir }) => {
                terminal::give_back();
                let said = self.ym.run_outside(&self.town, &argv, dir);
                terminal::enter(self.console.mouse)?;
                if let Err(why) = said {
                    self.console.refuse(why);
                }
            }
        }
        terminal::clear(screen)?;
        self.redraw = true;
        Ok(())
    }
}

/// What a town elsewhere is called, and the host it is on.
fn elsewhere(place: &Place) -> Option<(String, String)> {
    match place {
        Place::Folder(_) => None,
        Place::Ssh(town) => {
            let name = town.path().rsplit('/').find(|part| !part.is_empty()).unwrap_or(town.path());
            Some((format!("{name} on {}", town.host()), town.host().to_owned()))
        }
        Place::Web(town) => Some((town.host(), town.host())),
    }
}

/// Panics on the key named by `YM_PANIC_ON_KEY`: a test in a real terminal must see that a panic, which nothing else
/// provokes, gives the terminal back. Release builds have it too, because they abort, which is another way out.
fn panic_if_wished(event: &Event) {
    let Ok(wished) = std::env::var("YM_PANIC_ON_KEY") else { return };
    if let Event::Key(key) = event {
        assert_ne!(crate::keys::name(*key), Some(wished), "YM_PANIC_ON_KEY wished for it");
    }
}

impl Helpers {
    fn start(place: &Place, now: fn() -> Timestamp, sender: &UnboundedSender<Msg>) -> std::io::Result<Self> {
        let forecasts = sender.clone();
        let oracle = Oracle::start(move |made: Arc<Forecasts>| {
            let _ = forecasts.send(Msg::Forecast(made));
        })?;
        let oracle = Arc::new(oracle);
        let lines = sender.clone();
        let follower = Follower::start(place.clone(), move |news: LogNews| {
            let _ = lines.send(Msg::Log(news));
        })?;
        let news_to = sender.clone();
        let its_oracle = Arc::clone(&oracle);
        let tell = Arc::new(move |news: News| {
            // The copy is made here, where nobody waits for it.
            if let News::State(state) = &news {
                its_oracle.state((**state).clone());
            }
            news_to.send(Msg::Town(news)).is_ok()
        });
        let feed = Feed::start(place.clone(), now, tell)?;
        Ok(Self { _feed: feed, oracle, follower })
    }

    fn pass_on(&self, news: &News) {
        if let News::Events(events) = news {
            self.oracle.events(events.clone());
        }
    }
}

/// The signals that end us: a hang-up, and being told to go.
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn recv(&mut self) -> bool {
        tokio::select! {
            got = self.terminate.recv() => got.is_some(),
            got = self.interrupt.recv() => got.is_some(),
            got = self.hang_up.recv() => got.is_some(),
        }
    }
}
