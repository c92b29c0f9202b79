package chaos

import (
	"fmt"
	"net"
	"strconv"
	"sync"

	"github.com/streamgauge/streamgauge/internal/proxy"
)

// network is every way between instances and from instances to brokers.
type network struct {
	brokers [][]*proxy.Proxy // by slot, then broker
	peers   []*proxy.Proxy   // before each slot's gRPC; the caller is the origin
	running sync.WaitGroup

	mu   sync.Mutex // guards pids
	pids []int      // by slot, 0: down
}

func newNetwork(cfg *Config) (*network, error) {
	n := &network{pids: make([]int, cfg.Instances)}
	for s := range cfg.Instances {
		var ways []*proxy.Proxy
		for b := 1; b <= cfg.Brokers; b++ {
			p, err := n.add(cfg.port(slotVia+10*(s+1)+b), cfg.port(slotPort+10*(s+1)+b), nil)
			if err != nil {
				n.close()
				return nil, err
			}
			ways = append(ways, p)
		}
		n.brokers = append(n.brokers, ways)
		p, err := n.add(cfg.port(instancePort+10*(s+1)+3), cfg.port(instancePort+10*(s+1)+2), n.origin)
		if err != nil {
			n.close()
			return nil, err
		}
		n.peers = append(n.peers, p)
	}
	return n, nil
}

func (n *network) add(listen, target string, origin func(net.Addr) string) (*proxy.Proxy, error) {
	p, err := proxy.New(proxy.Config{Listen: listen, Target: target, Origin: origin})
	if err != nil {
		return nil, fmt.Errorf("%w (another run may have these ports: choose others with -ports)", err)
	}
	n.running.Go(func() { _ = p.Run() }) // ends with Close
	return p, nil
}

func (n *network) close() {
	for _, ways := range n.brokers {
		for _, p := range ways {
			p.Close()
		}
	}
	for _, p := range n.peers {
		p.Close()
	}
	n.running.Wait()
}

// process notes a slot's process, for telling who connects.
func (n *network) process(slot, pid int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pids[slot] = pid
}

// origin is the slot that connects, "": none.
func (n *network) origin(from net.Addr) string {
	n.mu.Lock()
	pids := append([]int(nil), n.pids...)
	n.mu.Unlock()
	pid := proxy.ProcessOf(from, pids)
	for s, p := range pids {
		if p == pid && p != 0 {
			return strconv.Itoa(s)
		}
	}
	return ""
}

// between sets a fault on the ways between two instances.
func (n *network) between(a, b int, f proxy.Fault) {
	n.peers[a].SetFrom(strconv.Itoa(b), f)
	n.peers[b].SetFrom(strconv.Itoa(a), f)
}

// around sets a fault on the ways between an instance and all others.
func (n *network) around(a int, f proxy.Fault) {
	for b := range n.peers {
		if b != a {
			n.between(a, b, f)
		}
	}
}

// toBrokers sets a fault on the ways of an instance to one broker, from 1; 0: to
// all.
func (n *network) toBrokers(a, broker int, f proxy.Fault) {
	for b, p := range n.brokers[a] {
		if broker == 0 || broker == b+1 {
			p.Set(f)
		}
	}
}

func (n *network) heal() {
	for _, ways := range n.brokers {
		for _, p := range ways {
			p.Heal()
		}
	}
	for _, p := range n.peers {
		p.Heal()
	}
}
