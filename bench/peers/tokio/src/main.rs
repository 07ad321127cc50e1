// The workloads on Tokio: an actor is a task, its mailbox an unbounded channel.
//
//     peer WORKLOAD THREADS [PORT]
//
// prints RESULT workload ops wall_ns cpu_ns peak_rss_kb extra, or, as echo, READY and serves.
// One thread is the current-thread runtime. BENCH_DIVIDE=n divides the amounts of work.
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{unbounded_channel as channel, UnboundedReceiver, UnboundedSender};
use tokio::sync::Notify;
use tokio::task::yield_now;

const BATCH: u64 = 1000;
const RING_ACTORS: usize = 503;
const BIG_ACTORS: usize = 10_000;

fn cpu_ns() -> u64 {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut ts) };
    ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64
}

fn status_kb(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(key)).unwrap_or("");
    line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).unwrap_or(0)
}

struct Watch {
    wall: Instant,
    cpu: u64,
}

impl Watch {
    fn start() -> Watch {
        Watch { cpu: cpu_ns(), wall: Instant::now() }
    }

    fn report(&self, workload: &str, ops: u64, extra: &str) {
        let mut wall = self.wall.elapsed().as_nanos() as u64;
        let cpu = cpu_ns() - self.cpu;
        let mut extra = extra.to_string();
        if workload.starts_with("timers") {
            extra = format!("wall_ms={};{}", wall / 1_000_000, extra);
            wall = cpu;
        }
        let rss = status_kb("VmHWM:");
        println!("RESULT {workload} {ops} {wall} {cpu} {rss} {extra}");
    }
}

fn random(state: &Cell<u32>) -> u32 {
    state.set((state.get() as u64 * 48271 % 2147483647) as u32);
    state.get()
}

async fn pingpong(trips: u64) {
    let watch = Watch::start();
    let (to_pong, mut pong) = channel::<u64>();
    let (to_ping, mut ping) = channel::<u64>();
    tokio::spawn(async move {
        while let Some(value) = pong.recv().await {
            let _ = to_ping.send(value);
        }
    });
    let ping_task = tokio::spawn(async move {
        for trip in 0..trips {
            to_pong.send(trip).expect("pong is gone");
            assert_eq!(ping.recv().await, Some(trip));
        }
    });
    ping_task.await.expect("ping failed");
    watch.report("pingpong", trips, "-");
}

async fn counting(workload: &str, increments: u64, producers: u64) {
    let watch = Watch::start();
    let (to_counter, mut counter) = channel::<u64>();
    let share = increments / producers;
    for _ in 0..producers {
        let to_counter = to_counter.clone();
        tokio::spawn(async move {
            for sent in 1..=share {
                to_counter.send(1).expect("the counter is gone");
                if sent % BATCH == 0 {
                    yield_now().await;
                }
            }
        });
    }
    drop(to_counter); // the channel ends with its last producer
    let counter_task = tokio::spawn(async move {
        let mut sum = 0;
        while let Some(value) = counter.recv().await {
            sum += value;
        }
        sum
    });
    assert_eq!(counter_task.await.expect("the counter failed"), share * producers);
    watch.report(workload, increments, "-");
}

async fn pass_on(mut mine: UnboundedReceiver<u64>, next: UnboundedSender<u64>, done: Arc<Notify>) {
    while let Some(value) = mine.recv().await {
        if value == 0 {
            done.notify_one();
            return;
        }
        let _ = next.send(value - 1);
    }
}

async fn ring(hops: u64) {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..RING_ACTORS).map(|_| channel::<u64>()).unzip();
    let done = Arc::new(Notify::new());
    for (place, mine) in receivers.into_iter().enumerate() {
        let next = senders[(place + 1) % RING_ACTORS].clone();
        tokio::spawn(pass_on(mine, next, done.clone()));
    }
    let watch = Watch::start();
    senders[0].send(hops).expect("the ring is gone");
    done.notified().await;
    watch.report("ring", hops, "-");
}

async fn fjcreate(workload: &str, actors: u64, chunk: u64) {
    let done = Arc::new(Notify::new());
    let left = Arc::new(AtomicU64::new(actors));
    let watch = Watch::start();
    for made in 1..=actors {
        let (to, mut mine) = channel::<u64>();
        let (left, done) = (left.clone(), done.clone());
        tokio::spawn(async move {
            mine.recv().await;
            if left.fetch_sub(1, Relaxed) == 1 {
                done.notify_one();
            }
        });
        to.send(made).expect("the actor is gone");
        if made % chunk == 0 {
            yield_now().await;
        }
    }
    done.notified().await;
    watch.report(workload, actors, "-");
}

enum BigMessage {
    Ping(usize),
    Pong,
}

async fn big(pings: u64) {
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..BIG_ACTORS).map(|_| channel::<BigMessage>()).unzip();
    let senders = Arc::new(senders);
    let left = Arc::new(AtomicU64::new(BIG_ACTORS as u64));
    let done = Arc::new(Notify::new());
    for (me, mut mine) in receivers.into_iter().enumerate() {
        let (all, left, done) = (senders.clone(), left.clone(), done.clone());
        tokio::spawn(async move {
            let state = Cell::new(me as u32 + 1);
            let mut own_left = pings / BIG_ACTORS as u64;
            while let Some(message) = mine.recv().await {
                match message {
                    BigMessage::Ping(from) => {
                        let _ = all[from].send(BigMessage::Pong);
                    }
                    BigMessage::Pong if own_left > 0 => {
                        own_left -= 1;
                        let to = random(&state) as usize % BIG_ACTORS;
                        let _ = all[to].send(BigMessage::Ping(me));
                    }
                    BigMessage::Pong => {
                        if left.fetch_sub(1, Relaxed) == 1 {
                            done.notify_one();
                        }
                    }
                }
            }
        });
    }
    let watch = Watch::start();
    for each in senders.iter() {
        let _ = each.send(BigMessage::Pong);
    }
    done.notified().await;
    watch.report("big", pings, "-");
}

async fn idle(actors: u64) {
    let mut senders: Vec<Option<UnboundedSender<u64>>> = vec![None; actors as usize];
    for each in senders.iter_mut() {
        *each = None; // touch the pages: they count before, not after
    }
    let alive = Arc::new(AtomicU64::new(0));
    let before_kb = status_kb("VmRSS:");
    let watch = Watch::start();
    for each in senders.iter_mut() {
        let (to, mut mine) = channel::<u64>();
        let alive = alive.clone();
        *each = Some(to);
        tokio::spawn(async move {
            alive.fetch_add(1, Relaxed);
            mine.recv().await;
        });
    }
    while alive.load(Relaxed) < actors {
        yield_now().await;
    }
    let bytes = (status_kb("VmRSS:") - before_kb) as f64 * 1024.0 / actors as f64;
    watch.report("idle", actors, &format!("bytes_per_actor={bytes:.1}"));
    std::process::exit(0); // taking it all down is not part of the measurement
}

async fn timers(workload: &str, count: u64, spread_ms: u64) {
    let (to, mut mine) = channel::<Instant>();
    let watch = Watch::start();
    tokio::spawn(async move {
        let state = Cell::new(42);
        for armed in 1..=count {
            let due = Instant::now() + Duration::from_millis(random(&state) as u64 % spread_ms);
            let to = to.clone();
            tokio::spawn(async move {
                tokio::time::sleep_until(due.into()).await;
                let _ = to.send(due);
            });
            if armed % BATCH == 0 {
                yield_now().await;
            }
        }
    });
    let mut late: Vec<f64> = Vec::with_capacity(count as usize);
    while let Some(due) = mine.recv().await {
        late.push(due.elapsed().as_nanos() as f64 / 1e3);
    }
    late.sort_by(|a, b| a.total_cmp(b));
    let (p50, p99) = (late[late.len() / 2], late[late.len() * 99 / 100]);
    watch.report(workload, count, &format!("p50_us={p50:.1};p99_us={p99:.1}"));
}

async fn echo_on(mut stream: TcpStream) {
    let mut buffer = [0u8; 4096];
    let _ = stream.set_nodelay(true);
    while let Ok(got @ 1..) = stream.read(&mut buffer).await {
        if stream.write_all(&buffer[..got]).await.is_err() {
            return;
        }
    }
}

async fn echo(port: &str) {
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await.expect("cannot listen");
    println!("READY");
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(echo_on(stream));
    }
}

async fn run(workload: String, divide: u64, port: String) {
    match workload.as_str() {
        "pingpong" => pingpong(5_000_000 / divide).await,
        "counting" => counting("counting", 10_000_000 / divide, 1).await,
        "counting2p" => counting("counting2p", 10_000_000 / divide, 2).await,
        "ring" => ring(10_000_000 / divide).await,
        "fjcreate" => fjcreate("fjcreate", 1_000_000 / divide, u64::MAX).await,
        "fjcreate_chunked" => fjcreate("fjcreate_chunked", 1_000_000 / divide, BATCH).await,
        "big" => big(10_000_000 / divide).await,
        "idle" => idle(1_000_000 / divide).await,
        "timers" => timers("timers", 1_000_000 / divide, 2000 / divide).await,
        "timers100k" => timers("timers100k", 100_000 / divide, 2000 / divide).await,
        "echo" => echo(&port).await,
        _ => {
            eprintln!("peer: no such workload: {workload}");
            std::process::exit(2);
        }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.len() < 3 {
        eprintln!("usage: peer WORKLOAD THREADS [PORT]");
        std::process::exit(2);
    }
    let threads: usize = args[2].parse().unwrap_or(1);
    let divide = std::env::var("BENCH_DIVIDE").ok().and_then(|n| n.parse().ok()).unwrap_or(1).max(1);
    let runtime = if threads == 1 {
        tokio::runtime::Builder::new_current_thread().enable_all().build()
    } else {
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()
    };
    let work = run(args[1].clone(), divide, args.get(3).cloned().unwrap_or_default());
    // In a task of its own: what block_on itself polls is not scheduled like the other tasks.
    runtime.expect("no runtime").block_on(async { tokio::spawn(work).await.expect("failed") });
    std::process::exit(0);
}
