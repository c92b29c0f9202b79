package server

import "time"

// Limits bound what one client can ask for. Zero means the default, a negative
// number no limit (a negative Time or timeout is an error).
type Limits struct {
	Body       int64 // bytes of a request or message: 256 KiB
	Tokens     int   // of a document: 2000
	Depth      int   // fields in fields, introspection apart: 15
	Aliases    int   // 30
	RootFields int   // 20
	Fields     int   // with fragments counted where they are spread: 1000
	Repeats    int   // fields asked for again in one selection set: 100
	Fragments  int   // definitions and spreads of a document: 100
	Operations int   // of a document: 10
	Directives int   // of one field or fragment: 5
	Complexity int   // as the schema counts it: 20,000

	Documents int           // kept parsed and validated: 1000
	Time      time.Duration // of a query: 10 s

	// Requests a second, and how many at once, of a subject; anonymous callers
	// by address. Subscribing counts as a request: 1000 and 2000, 200 and 400.
	Rate, AnonymousRate   float64
	Burst, AnonymousBurst int
	// Clients is how many subjects, and as many addresses, are remembered for
	// it: 10,000.
	Clients int

	Subscriptions int // of a socket: 50
	Sockets       int // and event streams, of a subject: 20

	InitTimeout  time.Duration // for connection_init: 3 s
	WriteTimeout time.Duration // for a message or event to be taken: 3 s
	Ping         time.Duration // between pings of a socket: 10 s
	Pong         time.Duration // for the answer: 10 s
	KeepAlive    time.Duration // between comments of an event stream: 10 s
	Drain        time.Duration // for everything to end after Serve's context: 5 s
}

// maxIntrospectionDepth bounds what Depth exempts; GraphiQL asks for 14.
const maxIntrospectionDepth = 20

func (l Limits) withDefaults() Limits {
	def(&l.Body, 256<<10)
	def(&l.Tokens, 2000)
	def(&l.Depth, 15)
	def(&l.Aliases, 30)
	def(&l.RootFields, 20)
	def(&l.Fields, 1000)
	def(&l.Repeats, 100)
	def(&l.Fragments, 100)
	def(&l.Operations, 10)
	def(&l.Directives, 5)
	def(&l.Complexity, 20_000)
	def(&l.Documents, 1000)
	def(&l.Time, 10*time.Second)
	def(&l.Rate, 1000)
	def(&l.Burst, 2000)
	def(&l.AnonymousRate, 200)
	def(&l.AnonymousBurst, 400)
	def(&l.Clients, 10_000)
	def(&l.Subscriptions, 50)
	def(&l.Sockets, 20)
	def(&l.InitTimeout, 3*time.Second)
	def(&l.WriteTimeout, 3*time.Second)
	def(&l.Ping, 10*time.Second)
	def(&l.Pong, 10*time.Second)
	def(&l.KeepAlive, 10*time.Second)
	def(&l.Drain, 5*time.Second)
	return l
}

func def[T int | int64 | float64 | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// over says whether n exceeds a limit that is not off.
func over[T int | int64](n, limit T) bool { return limit >= 0 && n > limit }
