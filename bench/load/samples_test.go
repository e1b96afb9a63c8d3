package load

// The figures of these sample sets come from wrk itself: its stats.c and
// units.c were given the same samples, and testdata/wrk holds what its print
// functions made of them.

// figures are what wrk's functions return for one set of samples.
type figures struct {
	count, min, max     int
	mean, stdev, within float64
	// percentiles are 50, 75, 90, 99 and 99.9.
	percentiles [5]int
}

var percentiles = [5]float64{50, 75, 90, 99, 99.9}

// sampleSet is one set of latencies and what else wrk prints.
type sampleSet struct {
	name string
	kind int
	seed uint64
	n    int
	// timeout and runtime are in microseconds.
	timeout, runtime int
	connections      int
	bytes            uint64
	errors           Errors
	raw, corrected   figures
}

// generator is a xorshift64, simple enough to be the same in C.
type generator uint64

func (g *generator) sample(kind, i int) int {
	r := uint64(*g)
	r ^= r << 13
	r ^= r >> 7
	r ^= r << 17
	*g = generator(r)
	switch kind {
	case uniform:
		return int(100 + r%1000)
	case stall:
		if i%2000 < 16 {
			return int(100000 + r%500)
		}
		return int(300 + r%300)
	case narrow:
		return int(5000 + r%1000)
	case heavyTail:
		return int(1<<(r%22) + (r>>32)%97)
	case constant:
		return 777
	default:
		return int(r % 3)
	}
}

const (
	uniform = iota
	stall
	narrow
	heavyTail
	constant
	nearZero
)

// maxRate is the highest rate that wrk counts.
const maxRate = 10_000_000

// histograms returns the set's latencies, and its rates.
func (s *sampleSet) histograms() (latencies, rates *histogram) {
	latencies, rates = newHistogram(), newHistogram()
	g := generator(s.seed * 0x9e3779b97f4a7c15)
	for i := range s.n {
		latencies.record(g.sample(s.kind, i), 1)
	}
	for i := range 20 {
		if rate := g.sample(s.kind, i) * 97; rate <= maxRate {
			rates.record(rate, 1)
		}
	}
	return latencies, rates
}

var sampleSets = []sampleSet{
	{
		name: "uniform", kind: uniform, seed: 1, n: 10000, timeout: 2e6, runtime: 312812, connections: 16, bytes: 1930000,
		raw:       figures{10000, 100, 1099, 601.5385, 289.682623779891, 57.5, [5]int{600, 855, 1003, 1091, 1098}},
		corrected: figures{11027, 100, 1099, 596.685136483178, 276.417448640168, 59.1548018500045, [5]int{574, 828, 993, 1089, 1098}},
	},
	{
		name: "rare correction", kind: uniform, seed: 2, n: 997, timeout: 2e6, runtime: 34069, connections: 16, bytes: 12,
		raw:       figures{997, 102, 1099, 611.564694082247, 293.977065666325, 57.6730190571715, [5]int{605, 879, 1014, 1092, 1099}},
		corrected: figures{998, 102, 1099, 611.503006012024, 293.836060384236, 57.7154308617234, [5]int{605, 879, 1014, 1092, 1099}},
	},
	{
		name: "stall", kind: stall, seed: 3, n: 20000, timeout: 2e6, runtime: 600625, connections: 16, bytes: 3000000000,
		raw:       figures{20000, 300, 100494, 1248.31865, 8890.98229342626, 99.2, [5]int{451, 527, 573, 599, 100449}},
		corrected: figures{53178, 300, 100494, 31814.3717326714, 33287.0870513339, 77.8385798638535, [5]int{20747, 60619, 84570, 98919, 100329}},
	},
	{
		name: "phantoms below the minimum", kind: narrow, seed: 4, n: 1000, timeout: 2e6, runtime: 100050, connections: 10, bytes: 900,
		raw:       figures{1000, 5000, 5997, 5505.308, 291.474974563507, 57.6, [5]int{5497, 5772, 5916, 5991, 5997}},
		corrected: figures{4998, 5000, 5997, 1101.50220088035, 1974.33899130081, 0, [5]int{}},
	},
	{
		name: "heavy tail", kind: heavyTail, seed: 5, n: 5000, timeout: 2e6, runtime: 4800025, connections: 100, bytes: 123456789,
		errors:    Errors{Connect: 1, Read: 2, Write: 3, Timeout: 233, Status: 4},
		raw:       figures{4767, 2, 1048672, 100837.859869939, 248826.809432028, 90.2664149360185, [5]int{1062, 32837, 262234, 1048657, 1048671}},
		corrected: figures{8016, 2, 1048672, 248579.44011976, 308838.74067192, 82.1107784431138, [5]int{131126, 428340, 760635, 1048636, 1048669}},
	},
	{
		name: "heavy tail, short timeout", kind: heavyTail, seed: 6, n: 5000, timeout: 1e5, runtime: 21420357, connections: 7, bytes: 5 << 40,
		errors:    Errors{Timeout: 1191},
		raw:       figures{3809, 1, 65632, 7643.23050669467, 16750.4609420273, 88.6059333158309, [5]int{271, 4155, 32787, 65619, 65631}},
		corrected: figures{4040, 1, 65632, 9240.81014851485, 17510.7444252002, 83.539603960396, [5]int{328, 8233, 35558, 65618, 65629}},
	},
	{
		name: "constant", kind: constant, seed: 7, n: 700, timeout: 2e6, runtime: 544250, connections: 1, bytes: 7 << 20,
		errors:    Errors{Status: 5},
		raw:       figures{700, 777, 777, 777, 0, 100, [5]int{777, 777, 777, 777, 777}},
		corrected: figures{700, 777, 777, 777, 0, 100, [5]int{777, 777, 777, 777, 777}},
	},
	{
		name: "constant, corrected", kind: constant, seed: 8, n: 100, timeout: 2e6, runtime: 38850, connections: 1, bytes: 870,
		raw:       figures{100, 777, 777, 777, 0, 100, [5]int{777, 777, 777, 777, 777}},
		corrected: figures{200, 777, 777, 388.5, 275.400348145738, 0, [5]int{}},
	},
	{
		name: "zeros", kind: nearZero, seed: 9, n: 1000, timeout: 2e6, runtime: 750, connections: 2, bytes: 871,
		raw:       figures{1000, 0, 2, 1.024, 0.807512276114782, 34.8, [5]int{1, 2, 2, 2, 2}},
		corrected: figures{1000, 0, 2, 1.024, 0.807512276114782, 34.8, [5]int{1, 2, 2, 2, 2}},
	},
	{
		name: "one", kind: uniform, seed: 10, n: 1, timeout: 2e6, runtime: 1234, connections: 1, bytes: 1024,
		raw:       figures{1, 271, 271, 271, 0, 100, [5]int{271, 271, 271, 271, 271}},
		corrected: figures{1, 271, 271, 271, 0, 100, [5]int{271, 271, 271, 271, 271}},
	},
	{
		name: "two", kind: uniform, seed: 11, n: 2, timeout: 2e6, runtime: 201, connections: 1, bytes: 1023,
		errors:    Errors{Connect: 9},
		raw:       figures{2, 925, 954, 939.5, 20.5060966544099, 100, [5]int{954, 954, 954, 954, 954}},
		corrected: figures{18, 925, 954, 104.388888888889, 286.483921713148, 0, [5]int{}},
	},
}
