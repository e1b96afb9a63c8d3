package cli

// What the help says.

const rootAbout = `armrepro reproduces the published benchmark of the Apache APISIX gateway on ARM
servers on the machine you run it on, in one command.`

const rootMore = `
'armrepro COMMAND --help' shows a command's flags; without a command, flags are those of run.

Exit codes: 0 measured, 1 failed, 2 usage, 3 measured but invalid, 130 interrupted.
`

const runAbout = `Measures the gateway in both scenarios of the published benchmark and prints the table.

It starts an etcd, the upstream and, in a private home, the installed APISIX; creates the
route of each scenario, proves that it is live, warms up, measures, and takes everything down
again. The installed files are not touched.`

const checkAbout = `Does everything that run does except the load: looks at the machine and the ports, starts
etcd, the upstream and the gateway, sends a request through the test route /anything/* to
armrepro's upstream, proves the route of each scenario, and takes everything down again.`

const loadAbout = `Loads URL over keep-alive connections and prints what wrk would print. Counts take
k, M or G (10k), times take s, m or h (1m).

Without --rate it is wrk's closed loop: each connection waits for its response before
sending again. With --rate it is an open loop: requests are due at a fixed rate whatever the
answers do, and latency counts from when a request was due, so that no stall hides
(coordinated omission); what it was from the real send time is printed as Service.

Differences from wrk:
  - There are no Lua scripts (-s).
  - An answer that never arrives counts as a timeout (wrk counts only late ones), and its
    connection is opened again after twice the timeout.
  - Bytes that follow an answer are a read error, and a 1xx answer is no request.
  - A server that closes or resets a connection after an answer and before the first byte of
    the next costs a reconnect, not an error, unless it had taken that request and closes
    without a reset. So does one whose answer ends with the connection. A reset is a read
    error, wherever wrk happens to notice it.
  - A server that refuses connections counts once a connection and outage, and is tried ten
    times a second.
  - An answer with both Content-Length and chunked is read as chunked.
  - What RFC 9110 and 9112 forbid, or nobody asked for, is a read error: folded headers that
    affect framing, an empty line before the answer, chunked in HTTP/1.0, any coding but
    chunked, 101, two lengths that differ, a zero byte or bare CR in a header, and headers
    above 64 KiB. The bytes of such answers count as read.
  - Connections that do not divide by the threads are all opened (wrk leaves out the rest).
  - Threads beyond the CPUs that it may use share a loop: taking turns on one CPU, they would
    only interrupt each other.
  - A request follows an answer at once. wrk waits until the socket is writable, which may
    take a while on a shared CPU, and counts that wait in no latency: at equal QPS its mean
    is lower.

No certificate is checked over https. Doubts about the figures (a busy thread, more than 1%
reconnects, a misfit of rate, latency and connections) go to standard error.`

// noScripts answers wrk's -s.
const noScripts = "wrk's Lua scripts (-s) are not there: use --method, --header and --body"

const etcdAbout = `Runs the embedded etcd until Ctrl-C: one member, for this machine only, with data that
is removed at the end.`

const upstreamAbout = `Answers every path with the ten bytes 1234567890, chunked, as the nginx of the published
benchmarks did, and /anything/* as httpbin does, until Ctrl-C.`

const gatewayAbout = `Runs the built-in gateway until Ctrl-C. It does what the two scenarios need in the way
APISIX does it, with one worker: the Admin API, routes kept in etcd, limit-count and
prometheus. It is not APISIX.`

const machineAbout = `Says what machine this is: core, product, cloud and instance type, and what else moves
a figure. --explain adds what each conclusion rests on, or why something is unknown; as
root it can read more. --root describes the machine that another tree's proc and sys were
recorded on. Serial numbers, uuids and instance ids are not read.`

const reportAbout = `Prints results that 'armrepro run --save FILE' or '--output json' wrote, one after the
other. FILE may be - for standard input.`

const scenarioAbout = `A scenario is what the gateway is asked to do under load. --scenario takes the names
single-upstream and two-plugins, or YAML files such as this one:

  name: limited                 # lower-case letters, digits and hyphens
  title: one upstream, limited  # what a reader sees (default: the name)
  path: /hello                  # what the load requests
  route:                        # the Admin API's route object; the upstream is filled in
    uri: /hello
    plugins:
      limit-count: {count: 1000000, time_window: 60, key: remote_addr}
      prometheus: {}
  expect:                       # what proves that the route is live, all of it optional
    body: "1234567890"          # the answer of armrepro's upstream
    headers: [X-RateLimit-Limit]
    absent_headers: [X-Cache]
    metric: apisix_http_status  # a metric that has to count the route

A key that is not listed here is an error. See how such a file does with
'armrepro check --scenario FILE' before you measure with it.`
