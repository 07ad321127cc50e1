// The workloads on Go: an actor is a goroutine, its mailbox a buffered channel.
//
//	peer WORKLOAD THREADS [PORT]
//
// prints RESULT workload ops wall_ns cpu_ns peak_rss_kb extra, or, as echo, READY and serves.
// BENCH_DIVIDE=n divides the amounts of work.
package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	ringActors = 503
	bigActors  = 10000
	batch      = 1000
	roomy      = 1024 // the mailbox bound of the runtime we compare with
)

var (
	divide  = int64(1)
	started = time.Now()
)

func clock() int64 { return time.Since(started).Nanoseconds() }

func cpuClock() int64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func statusKb(key string) int64 {
	text, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, key) {
			kb, _ := strconv.ParseInt(strings.Fields(line)[1], 10, 64)
			return kb
		}
	}
	return 0
}

type stopwatch struct{ wall, cpu int64 }

func start() stopwatch { return stopwatch{clock(), cpuClock()} }

func (s stopwatch) report(workload string, ops int64, extra string) {
	wall, cpu := clock()-s.wall, cpuClock()-s.cpu
	if strings.HasPrefix(workload, "timers") {
		extra = fmt.Sprintf("wall_ms=%d;%s", wall/1000000, extra)
		wall = cpu
	}
	fmt.Printf("RESULT %s %d %d %d %d %s\n", workload, ops, wall, cpu, statusKb("VmHWM:"), extra)
}

func random(state *uint32) uint32 {
	*state = uint32(uint64(*state) * 48271 % 2147483647)
	return *state
}

func pingpong(trips int64) {
	ping, pong := make(chan int64, roomy), make(chan int64, roomy)
	done := make(chan struct{})
	watch := start()
	go func() {
		for value := range pong {
			ping <- value
		}
	}()
	go func() {
		for left := trips; left > 0; left-- {
			pong <- left
			<-ping
		}
		close(done)
	}()
	<-done
	watch.report("pingpong", trips, "-")
}

func counting(workload string, increments int64, producers int64) {
	box, total := make(chan int64, roomy), make(chan int64)
	watch := start()
	go func() {
		sum, running := int64(0), producers
		for running > 0 {
			if value := <-box; value > 0 {
				sum += value
			} else {
				running--
			}
		}
		total <- sum
	}()
	for i := int64(0); i < producers; i++ {
		go func() {
			for left := increments / producers; left > 0; left-- {
				box <- 1
			}
			box <- 0
		}()
	}
	if <-total != increments/producers*producers {
		panic("counting lost messages")
	}
	watch.report(workload, increments, "-")
}

func ring(hops int64) {
	boxes := make([]chan int64, ringActors)
	done := make(chan struct{})
	for i := range boxes {
		boxes[i] = make(chan int64, 16)
	}
	for i := range boxes {
		go func(mine, next chan int64) {
			for value := range mine {
				if value == 0 {
					close(done)
					return
				}
				next <- value - 1
			}
		}(boxes[i], boxes[(i+1)%ringActors])
	}
	watch := start()
	boxes[0] <- hops
	<-done
	watch.report("ring", hops, "-")
}

func fjcreate(actors int64) {
	left := actors
	done := make(chan struct{})
	watch := start()
	for i := int64(0); i < actors; i++ {
		box := make(chan int64, 1)
		go func() {
			<-box
			if atomic.AddInt64(&left, -1) == 0 {
				close(done)
			}
		}()
		box <- i
	}
	<-done
	watch.report("fjcreate", actors, "-")
}

type bigMessage struct {
	replyTo chan bigMessage // nil in a pong
	value   int64
}

// Bounded channels block; with too little room every actor can end up waiting for one that
// waits. 128 is enough for these actors.
func big(pings int64) {
	boxes := make([]chan bigMessage, bigActors)
	finished := make(chan struct{}, bigActors)
	for i := range boxes {
		boxes[i] = make(chan bigMessage, 128)
	}
	for i := range boxes {
		go func(mine chan bigMessage, state uint32) {
			left := pings / bigActors
			for message := range mine {
				switch {
				case message.replyTo != nil:
					message.replyTo <- bigMessage{nil, message.value}
				case left == 0:
					finished <- struct{}{}
				default:
					left--
					boxes[random(&state)%bigActors] <- bigMessage{mine, left}
				}
			}
		}(boxes[i], uint32(i)+1)
	}
	watch := start()
	for _, box := range boxes {
		box <- bigMessage{}
	}
	for range boxes {
		<-finished
	}
	watch.report("big", pings, "-")
}

func idle(actors int64) {
	boxes := make([]chan int64, actors)
	for i := range boxes { // touch the pages: they count before, not after
		boxes[i] = nil
	}
	var alive int64
	before := statusKb("VmRSS:")
	watch := start()
	for i := range boxes {
		box := make(chan int64, 1)
		boxes[i] = box
		go func() {
			atomic.AddInt64(&alive, 1)
			<-box
		}()
	}
	for atomic.LoadInt64(&alive) < actors {
		runtime.Gosched()
	}
	bytes := float64(statusKb("VmRSS:")-before) * 1024 / float64(actors)
	watch.report("idle", actors, fmt.Sprintf("bytes_per_actor=%.1f", bytes))
	runtime.KeepAlive(boxes)
}

func timers(workload string, count, spreadMs int64) {
	box := make(chan int64, roomy)
	late := make([]int64, 0, count)
	watch := start()
	go func() {
		state := uint32(42)
		for i := int64(1); i <= count; i++ {
			delay := int64(random(&state)) % spreadMs * 1000000
			due := clock() + delay
			time.AfterFunc(time.Duration(delay), func() { box <- due })
			if i%batch == 0 {
				runtime.Gosched()
			}
		}
	}()
	for int64(len(late)) < count {
		due := <-box
		late = append(late, clock()-due)
	}
	sort.Slice(late, func(i, j int) bool { return late[i] < late[j] })
	watch.report(workload, count, fmt.Sprintf("p50_us=%.1f;p99_us=%.1f",
		float64(late[count/2])/1e3, float64(late[count*99/100])/1e3))
}

func serveConn(conn net.Conn) {
	defer conn.Close()
	buffer := make([]byte, 4096)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			return
		}
		if _, err = conn.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func echo(port string) {
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("READY")
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go serveConn(conn)
	}
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: peer WORKLOAD THREADS [PORT]")
		os.Exit(2)
	}
	if n, err := strconv.ParseInt(os.Getenv("BENCH_DIVIDE"), 10, 64); err == nil && n > 0 {
		divide = n
	}
	threads, _ := strconv.Atoi(os.Args[2])
	runtime.GOMAXPROCS(threads)
	switch workload := os.Args[1]; workload {
	case "pingpong":
		pingpong(5000000 / divide)
	case "counting":
		counting(workload, 10000000/divide, 1)
	case "counting2p":
		counting(workload, 10000000/divide, 2)
	case "ring":
		ring(10000000 / divide)
	case "fjcreate":
		fjcreate(1000000 / divide)
	case "big":
		big(10000000 / divide)
	case "idle":
		idle(1000000 / divide)
	case "timers":
		timers(workload, 1000000/divide, 2000/divide)
	case "timers100k":
		timers(workload, 100000/divide, 2000/divide)
	case "echo":
		echo(os.Args[len(os.Args)-1])
	default:
		fmt.Fprintln(os.Stderr, "peer: no such workload:", workload)
		os.Exit(2)
	}
}
