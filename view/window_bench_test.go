package view

import "testing"

// BenchmarkPointsFilled is ten thousand points without a record, of steps that
// end at local midnights.
func BenchmarkPointsFilled(b *testing.B) {
	const hour = 3_600_000
	for name, step := range map[string]int64{"1h": 0, "6h": 6 * hour, "1d": day, "1w": 7 * day} {
		b.Run(name, func(b *testing.B) {
			v := readings()
			span := 9_900 * max(step, hour)
			b.ReportAllocs()
			for b.Loop() {
				g, err := NewGrid(v.Window.Size, step, zoneOf(b, "America/Sao_Paulo"))
				if err != nil {
					b.Fatal(err)
				}
				from := at("1970-01-01T00:00:00Z")
				points, err := NewSeries(v, g, from, from+span, from, 10_000).Points(FillEmpty)
				if err != nil || len(points) < 9_000 {
					b.Fatal(len(points), err)
				}
			}
		})
	}
}
