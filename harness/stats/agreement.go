package stats

import (
	"fmt"
	"math"
)

// Agreement says how far two raters agree who put the same things into the same
// categories. Read all three numbers: where nearly everything is of one category,
// raters who guess agree often. Kappa asks for more than guessing with these
// shares would give, and is near 0 there; AC1 hardly moves with the shares. None
// of them says which rater is right.
type Agreement struct {
	N        int         `json:"n"`        // things that both rated
	Observed Coefficient `json:"observed"` // share that both put into one category; its range is Wilson's
	Kappa    Coefficient `json:"kappa"`    // Cohen 1960; se of Fleiss, Cohen and Everitt 1969
	AC1      Coefficient `json:"ac1"`      // Gwet 2008; se as in the irrCAC package
}

// Coefficient is a measure of agreement: 1 is full agreement. Kappa and AC1 are 0
// where it is no more than chance would give, and absent when every rating is the
// same, which shows nothing. Their range is normal, cut to -1 and 1; there is none
// when the standard error is 0, which is not certainty.
type Coefficient struct {
	Value Opt `json:"value"`
	SE    Opt `json:"se"`
	Low   Opt `json:"low"`
	High  Opt `json:"high"`
}

// Agree measures the agreement in a square table: table[k][l] counts what the one
// rater put into category k and the other into l. Only Options.Alpha is looked at.
func Agree(table [][]int, o Options) (Agreement, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Agreement{}, err
	}
	r, err := newRatings(table)
	if err != nil {
		return Agreement{}, err
	}
	a := Agreement{N: r.n}
	if r.n == 0 {
		return a, nil
	}
	low, high := wilson(r.agreed, r.n, o.zAlpha())
	a.Observed = Coefficient{Value: some(r.observed()), Low: some(low), High: some(high)}
	if r.varied() {
		a.Kappa = coefficient(r.kappa, o)
		a.AC1 = coefficient(r.ac1, o)
	}
	return a, nil
}

func coefficient(of func() (value, se float64), o Options) Coefficient {
	value, se := of()
	c := Coefficient{Value: some(value), SE: some(se)}
	if se > 0 {
		half := o.zAlpha() * se
		c.Low, c.High = some(max(-1, value-half)), some(min(1, value+half))
	}
	return c
}

// ratings is a table of two raters as shares.
type ratings struct {
	n, agreed int
	p         [][]float64 // of all
	row, col  []float64   // the two raters' shares of each category
}

func newRatings(table [][]int) (*ratings, error) {
	q := len(table)
	r := &ratings{row: make([]float64, q), col: make([]float64, q)}
	for k, line := range table {
		if len(line) != q {
			return nil, fmt.Errorf("reading a table of agreement: row %d has %d cells of %d: give a square table", k, len(line), q)
		}
		for l, count := range line {
			if count < 0 {
				return nil, fmt.Errorf("reading a table of agreement: cell %d, %d is %d: give counts", k, l, count)
			}
			r.n += count
			if k == l {
				r.agreed += count
			}
		}
	}
	for k, line := range table {
		r.p = append(r.p, make([]float64, q))
		for l, count := range line {
			share := float64(count) / float64(max(1, r.n))
			r.p[k][l] = share
			r.row[k] += share
			r.col[l] += share
		}
	}
	return r, nil
}

func (r *ratings) observed() float64 { return float64(r.agreed) / float64(r.n) }

// varied reports whether more than one category was given.
func (r *ratings) varied() bool {
	used := 0
	for k := range r.row {
		if r.row[k]+r.col[k] > 0 {
			used++
		}
	}
	return used > 1
}

// kappa is (p_o − Σ r_k·c_k)/(1 − Σ r_k·c_k).
func (r *ratings) kappa() (value, se float64) {
	chance := 0.0
	for k := range r.row {
		chance += r.row[k] * r.col[k]
	}
	value = (r.observed() - chance) / (1 - chance)
	squares := 0.0
	for k := range r.p {
		for l, share := range r.p[k] {
			d := same(k, l) - (1-value)*(r.col[k]+r.row[l])
			squares += share * d * d
		}
	}
	return value, r.se(squares, r.observed()-2*(1-value)*chance, chance)
}

// ac1 is (p_o − p_e)/(1 − p_e) with p_e = Σ π_k·(1−π_k)/(q−1), where π_k is the mean
// of the raters' shares of category k, and q counts the categories.
func (r *ratings) ac1() (value, se float64) {
	others := float64(len(r.row) - 1)
	share := make([]float64, len(r.row))
	chance := 0.0
	for k := range share {
		share[k] = (r.row[k] + r.col[k]) / 2
		chance += share[k] * (1 - share[k]) / others
	}
	value = (r.observed() - chance) / (1 - chance)
	squares := 0.0
	for k := range r.p {
		for l, p := range r.p[k] {
			d := same(k, l) - 2*(1-value)*(1-(share[k]+share[l])/2)/others
			squares += p * d * d
		}
	}
	return value, r.se(squares, r.observed()-2*(1-value)*chance, chance)
}

// se is √((Σ p·d² − m²) / (n·(1−p_e)²)), both coefficients' form.
func (r *ratings) se(squares, mean, chance float64) float64 {
	return math.Sqrt(max(0, squares-mean*mean)/float64(r.n)) / (1 - chance)
}

func same(k, l int) float64 {
	if k == l {
		return 1
	}
	return 0
}

// Orders counts what a judge of pairs said when each pair was shown in both orders.
type Orders struct {
	Same   int `json:"same"`   // the same winner, or twice a tie
	First  int `json:"first"`  // whichever came first
	Second int `json:"second"` // whichever came second
	Tied   int `json:"tied"`   // a winner in one order, a tie in the other
}

// PositionBias says how far a judge's verdict hangs on the order of what it is shown.
type PositionBias struct {
	Orders
	Flipped Coefficient `json:"flipped"` // share of pairs that were not judged the same in both orders; Wilson's range
	ToFirst Coefficient `json:"to_first"`
	P       Opt         `json:"p"` // of no preference for a place: sign test on First and Second
}

// Bias measures the bias in orders. ToFirst is the share of First among First and
// Second, with Wilson's range.
func (c Orders) Bias(o Options) (PositionBias, error) {
	o, err := o.withDefaults()
	if err != nil {
		return PositionBias{}, err
	}
	moved := c.First + c.Second
	return PositionBias{
		Orders: c, P: some(table{candidate: c.First, baseline: c.Second}.mcnemar().exact),
		Flipped: shareOf(moved+c.Tied, moved+c.Tied+c.Same, o), ToFirst: shareOf(c.First, moved, o),
	}, nil
}

func shareOf(k, n int, o Options) Coefficient {
	if n == 0 {
		return Coefficient{}
	}
	low, high := wilson(k, n, o.zAlpha())
	return Coefficient{Value: some(float64(k) / float64(n)), Low: some(low), High: some(high)}
}
