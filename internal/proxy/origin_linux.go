package proxy

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ProcessOf finds which of some processes of this machine has the client's end
// of a loopback connection; 0: none, or it cannot be told. from is the address
// that the connection comes from.
//
// Source: proc_net_tcp in the kernel's documentation; a socket's inode there is
// the one that /proc/<pid>/fd links to.
func ProcessOf(from net.Addr, pids []int) int {
	a, ok := from.(*net.TCPAddr)
	if !ok {
		return 0
	}
	inode := inodeOf(a.Port)
	if inode == "" {
		return 0
	}
	want := "socket:[" + inode + "]"
	for _, pid := range pids {
		dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if to, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && to == want {
				return pid
			}
		}
	}
	return 0
}

// inodeOf is the socket of 127.0.0.1 with a local port.
func inodeOf(port int) string {
	f, err := os.Open("/proc/net/tcp")
	if err != nil {
		return ""
	}
	defer f.Close()
	local := fmt.Sprintf("0100007F:%04X", port)
	for s := bufio.NewScanner(f); s.Scan(); {
		if fields := strings.Fields(s.Text()); len(fields) > 9 && fields[1] == local && fields[9] != "0" {
			return fields[9]
		}
	}
	return ""
}
