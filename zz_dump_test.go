package streamgauge
import ("testing";"fmt";"sort")
func TestDump(t *testing.T){
 c := newSmallCluster(t)
 a,_ := c.instance("a")
 c.instancesAt(a.http, func(l []instanceInfo) bool { return len(l)==1 && whole(l)})
 gw := c.gateway(a.rpc.Addr().String())
 x := described(a.registry); y := described(gw.registry)
 var names []string
 for n := range x { names=append(names,n) }
 for n := range y { if _,ok := x[n]; !ok { names=append(names,n+" GW ONLY")} }
 sort.Strings(names)
 for _,n := range names { fmt.Println(n, x[n].labels, "|", x[n].help, y[n].help!="") }
}
