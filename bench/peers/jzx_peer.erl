%% The workloads on Erlang: an actor is a process.
%%
%%   erl -noshell +S THREADS:THREADS +P 2000000 -pa DIR -run jzx_peer main WORKLOAD [PORT]
%%
%% prints RESULT workload ops wall_ns cpu_ns peak_rss_kb extra, or, as echo, READY and serves.
%% BENCH_DIVIDE=n divides the amounts of work.
-module(jzx_peer).
-export([main/1]).

-define(RING_ACTORS, 503).
-define(BIG_ACTORS, 10000).

main([Workload | Rest]) ->
    case Workload of
        "pingpong" -> pingpong(amount(5000000));
        "counting" -> counting(Workload, amount(10000000), 1);
        "counting2p" -> counting(Workload, amount(10000000), 2);
        "ring" -> ring(amount(10000000));
        "fjcreate" -> fjcreate(amount(1000000));
        "big" -> big(amount(10000000));
        "idle" -> idle(amount(1000000));
        "timers" -> timers(Workload, amount(1000000), amount(2000));
        "timers100k" -> timers(Workload, amount(100000), amount(2000));
        "echo" -> echo(list_to_integer(hd(Rest)));
        _ -> io:format(standard_error, "peer: no such workload: ~s~n", [Workload]), halt(2)
    end,
    halt(0).

amount(Full) ->
    Full div list_to_integer(os:getenv("BENCH_DIVIDE", "1")).

clock() -> erlang:monotonic_time(nanosecond).

%% The first number of a thread's schedstat is its time on a CPU in ns.
cpu_clock() ->
    Threads = filelib:wildcard("/proc/self/task/*/schedstat"),
    lists:sum([thread_cpu(File) || File <- Threads]).

thread_cpu(File) ->
    case file:read_file(File) of
        {ok, Text} -> binary_to_integer(hd(binary:split(Text, <<" ">>)));
        {error, _} -> 0
    end.

status_kb(Key) ->
    {ok, Text} = file:read_file("/proc/self/status"),
    [Line] = [L || L <- binary:split(Text, <<"\n">>, [global]),
                   binary:match(L, Key) =:= {0, byte_size(Key)}],
    [_, Kb | _] = string:lexemes(Line, " \t"),
    binary_to_integer(Kb).

start() -> {clock(), cpu_clock()}.

report({Wall, Cpu}, Workload, Ops, Extra) ->
    print(Workload, Ops, clock() - Wall, cpu_clock() - Cpu, Extra).

print(Workload, Ops, Wall, Cpu, Extra) ->
    io:format("RESULT ~s ~b ~b ~b ~b ~s~n",
              [Workload, Ops, Wall, Cpu, status_kb(<<"VmHWM:">>), Extra]).

random(State) -> State * 48271 rem 2147483647.

await(What) -> receive What -> ok end.

pingpong(Trips) ->
    Main = self(),
    Watch = start(),
    spawn(fun() ->
        Ping = self(),
        Pong = spawn(fun() -> return_all(Ping) end),
        serve(Trips, Pong),
        Main ! done
    end),
    await(done),
    report(Watch, "pingpong", Trips, "-").

serve(0, _) -> ok;
serve(Left, Pong) ->
    Pong ! Left,
    receive Left -> serve(Left - 1, Pong) end.

return_all(Ping) ->
    receive Value -> Ping ! Value, return_all(Ping) end.

counting(Workload, Increments, Producers) ->
    Main = self(),
    Share = Increments div Producers,
    Watch = start(),
    Counter = spawn(fun() -> Main ! {total, count(0, Producers)} end),
    [spawn(fun() -> produce(Share, Counter) end) || _ <- lists:seq(1, Producers)],
    Total = Share * Producers,
    await({total, Total}),
    report(Watch, Workload, Increments, "-").

count(Sum, 0) -> Sum;
count(Sum, Producers) ->
    receive
        stop -> count(Sum, Producers - 1);
        Value -> count(Sum + Value, Producers)
    end.

produce(0, Counter) -> Counter ! stop;
produce(Left, Counter) -> Counter ! 1, produce(Left - 1, Counter).

ring(Hops) ->
    Main = self(),
    First = spawn(fun() -> receive {next, Next} -> pass_on(Next, Main) end end),
    Second = lists:foldl(fun(_, Next) -> spawn(fun() -> pass_on(Next, Main) end) end,
                         First, lists:seq(2, ?RING_ACTORS)),
    First ! {next, Second},
    Watch = start(),
    First ! Hops,
    await(done),
    report(Watch, "ring", Hops, "-").

pass_on(Next, Main) ->
    receive
        0 -> Main ! done;
        Value -> Next ! Value - 1, pass_on(Next, Main)
    end.

fjcreate(Actors) ->
    Main = self(),
    Ended = atomics:new(1, []),
    Watch = start(),
    spawn(fun() -> create(Actors, Actors, Ended, Main) end),
    await(done),
    report(Watch, "fjcreate", Actors, "-").

create(0, _, _, _) -> ok;
create(Left, Actors, Ended, Main) ->
    Child = spawn(fun() ->
        receive _ -> ok end,
        case atomics:add_get(Ended, 1, 1) of
            Actors -> Main ! done;
            _ -> ok
        end
    end),
    Child ! Left,
    create(Left - 1, Actors, Ended, Main).

big(Pings) ->
    Main = self(),
    Each = Pings div ?BIG_ACTORS,
    Actors = [spawn(fun() -> receive {all, All} -> member(All, Seed, Each, Main) end end)
              || Seed <- lists:seq(1, ?BIG_ACTORS)],
    persistent_term:put(crowd, list_to_tuple(Actors)),
    All = persistent_term:get(crowd),
    %% A literal: sending it copies nothing.
    [Actor ! {all, All} || Actor <- Actors],
    Watch = start(),
    [Actor ! pong || Actor <- Actors],
    [await(finished) || _ <- Actors],
    report(Watch, "big", Pings, "-").

member(All, State, Left, Main) ->
    receive
        {ping, From, _} ->
            From ! pong,
            member(All, State, Left, Main);
        pong when Left > 0 ->
            Next = random(State),
            element(Next rem ?BIG_ACTORS + 1, All) ! {ping, self(), Left},
            member(All, Next, Left - 1, Main);
        pong ->
            Main ! finished,
            member(All, State, Left, Main)
    end.

idle(Actors) ->
    Main = self(),
    Alive = atomics:new(1, []),
    erlang:garbage_collect(),
    Before = status_kb(<<"VmRSS:">>),
    Watch = start(),
    be_idle(Actors, Actors, Alive, Main),
    await(alive),
    Bytes = (status_kb(<<"VmRSS:">>) - Before) * 1024 / Actors,
    report(Watch, "idle", Actors, io_lib:format("bytes_per_actor=~.1f", [Bytes])).

be_idle(0, _, _, _) -> ok;
be_idle(Left, Actors, Alive, Main) ->
    spawn(fun() ->
        case atomics:add_get(Alive, 1, 1) of
            Actors -> Main ! alive;
            _ -> ok
        end,
        await(stop)
    end),
    be_idle(Left - 1, Actors, Alive, Main).

timers(Workload, Count, SpreadMs) ->
    Main = self(),
    {Wall, Cpu} = start(),
    spawn(fun() -> arm(Count, SpreadMs, 42, Main) end),
    Late = list_to_tuple(lists:sort(collect(Count, []))),
    WallNs = clock() - Wall,
    CpuNs = cpu_clock() - Cpu,
    Extra = io_lib:format("wall_ms=~b;p50_us=~.1f;p99_us=~.1f",
                          [WallNs div 1000000, element(Count div 2 + 1, Late) / 1000,
                           element(Count * 99 div 100 + 1, Late) / 1000]),
    print(Workload, Count, CpuNs, CpuNs, Extra).

arm(0, _, _, _) -> ok;
arm(Left, SpreadMs, State, Main) ->
    Next = random(State),
    DelayMs = Next rem SpreadMs,
    erlang:send_after(DelayMs, Main, {due, clock() + DelayMs * 1000000}),
    arm(Left - 1, SpreadMs, Next, Main).

collect(0, Late) -> Late;
collect(Left, Late) ->
    receive {due, Due} -> collect(Left - 1, [clock() - Due | Late]) end.

echo(Port) ->
    {ok, Listener} = gen_tcp:listen(Port, [binary, {ip, {127, 0, 0, 1}}, {reuseaddr, true},
                                           {nodelay, true}, {backlog, 256}, {active, false}]),
    io:format("READY~n"),
    accept(Listener).

accept(Listener) ->
    {ok, Socket} = gen_tcp:accept(Listener),
    Owner = spawn(fun() -> await(yours), echo_on(Socket) end),
    ok = gen_tcp:controlling_process(Socket, Owner),
    Owner ! yours,
    accept(Listener).

echo_on(Socket) ->
    ok = inet:setopts(Socket, [{active, once}]),
    receive
        {tcp, Socket, Bytes} -> ok = gen_tcp:send(Socket, Bytes), echo_on(Socket);
        {tcp_closed, Socket} -> ok;
        {tcp_error, Socket, _} -> ok
    end.
