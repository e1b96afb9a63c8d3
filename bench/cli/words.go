package cli

// What the help says.

const rootAbout = `armrepro repeats the published benchmark of the Apache APISIX gateway on ARM servers.
One command runs it on this machine.`

const rootMore = `
'armrepro COMMAND --help' lists a command's flags. Flags without a command are those of run.

Exit codes: 0 measured, 1 failed or could not remove everything, 2 usage,
3 measured but invalid, 130 interrupted, 141 output closed by its reader.
`

const runAbout = `Measures the gateway in both scenarios of the published benchmark and prints the table.

It starts etcd, the upstream and, in a private folder, the installed APISIX. For each scenario
it creates the route, verifies that it works, warms up and measures. At the end it stops and
removes everything. It does not touch the installed files.

--load-tool wrk and --upstream-tool nginx put the installed wrk and nginx, which the posts
used, in the place of armrepro's own load generator and upstream. Figures that they do not
report are missing. --cross-check measures with wrk after the runs of each scenario, on the
same running gateway, and shows the ratios. It is in no average.`

const checkAbout = `Does everything that run does except the load. It checks the machine and the ports and starts
etcd, the upstream and the gateway. It sends a request through the test route /anything/* to
armrepro's upstream and verifies the route of each scenario. At the end it stops and removes
everything.`

const loadAbout = `Loads URL over keep-alive connections and prints what wrk would print. Counts take
k, M or G (10k), times take s, m or h (1m).

Without --rate it is wrk's closed loop: each connection waits for its response before
sending again. With --rate it is an open loop at a fixed request rate. Latency then counts
from when the request was due, so it includes stalls (no coordinated omission). Latency from
the actual send time is printed as Service.

Differences from wrk:
  - There are no Lua scripts (-s).
  - A response that never arrives counts as a timeout (wrk counts only late ones). Its
    connection is reopened after twice the timeout.
  - Bytes after the end of a response are a read error. A 1xx response does not count as a
    request.
  - If the server closes or resets a connection between responses, that is a reconnect, not
    an error. The same holds for a response that ends with its connection. A server that
    received the next request and closes without a reset causes a read error. Any other reset
    is a read error too, wherever wrk happens to notice it.
  - A refused connection counts as one error per connection and outage. It is retried ten
    times a second.
  - A response with both Content-Length and chunked is read as chunked.
  - Responses that RFC 9110 and 9112 forbid, or that the request cannot have, are read errors:
    folded headers that affect framing, an empty line before the response, chunked in
    HTTP/1.0, any coding except chunked, status 101, two different lengths, a zero byte or
    bare CR in a header, and headers above 64 KiB. Their bytes count as read.
  - All connections are opened, even if they do not divide evenly by the threads (wrk drops
    the remainder).
  - Threads beyond the usable CPUs share an event loop. Separate loops would only interrupt
    each other.
  - The next request follows a response at once. wrk first waits until the socket is
    writable. That can take a while on a shared CPU, and no latency includes it, so at equal
    QPS wrk's mean is lower.

Over https, certificates are not verified. Doubts about the figures go to standard error: a
busy thread, more than 1 % reconnects, or rate, latency and connections that contradict each
other.`

// noScripts answers wrk's -s.
const noScripts = "use --method, --header and --body: there are no Lua scripts (-s)"

const etcdAbout = `Runs the embedded etcd until Ctrl-C: one member, for this machine only. Its data is removed
at the end.`

const upstreamAbout = `Runs the upstream until Ctrl-C. It answers every path with the ten bytes 1234567890, chunked,
like nginx in the published benchmarks, and /anything/* like httpbin.`

const gatewayAbout = `Runs the built-in gateway until Ctrl-C. It has one worker and what the two scenarios need of
APISIX: the Admin API, routes in etcd, limit-count and prometheus. It is not APISIX.`

const machineAbout = `Identifies the machine: core, product, cloud, instance type, and whatever else affects the
figures. --explain adds the evidence for each line, or why something is unknown. Run it as
root to read more. --root describes a machine from a recorded copy of its /proc and /sys.
Serial numbers, UUIDs and instance ids are not read.`

const reportAbout = `Prints the results that 'armrepro run --save FILE' or '--output json' wrote. FILE may be -
for standard input.`

const scenarioAbout = `A scenario says what the gateway does under load. --scenario takes the names single-upstream
and two-plugins, or YAML files such as this one:

  name: limited                 # lower-case letters, digits and hyphens
  title: one upstream, limited  # the title in reports (default: the name)
  path: /hello                  # the path that the load requests
  route:                        # the Admin API's route object; armrepro fills in the upstream
    uri: /hello
    plugins:
      limit-count:
        count: 1000000
        time_window: 60
        key: remote_addr
      prometheus: {}
  expect:                       # shows that the route works; each line is optional
    body: "1234567890"          # the response of armrepro's upstream
    headers: [X-RateLimit-Limit]
    absent_headers: [X-Cache]
    metric: apisix_http_status  # a metric that must count the route's requests

Any other key is an error. Try the file with 'armrepro check --scenario FILE' before you
measure.`
