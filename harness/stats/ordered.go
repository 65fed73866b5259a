package stats

// OrderedAgreement says how far two raters agree on ordered categories, where
// the next category is less of a miss than one far off.
type OrderedAgreement struct {
	N        int         `json:"n"`        // things that both rated
	Observed Opt         `json:"observed"` // mean weight of what was seen: 1 if both say the same
	Chance   Opt         `json:"chance"`   // and of what raters with these shares would give by guessing
	Kappa    Coefficient `json:"kappa"`    // Cohen 1968; se of Fleiss, Cohen and Everitt 1969
}

// AgreeOrdered measures the agreement in a square table as [Agree] does, with
// categories in their order and quadratic weights 1 - (k-l)²/(q-1)²: the one
// for grades such as 0 to 4. With two categories it is kappa. It forgives a
// rater who is one grade off everywhere; look at the table for that. Kappa is
// absent when every rating is the same.
//
// What is an error for [Agree] is one here.
func AgreeOrdered(table [][]int, o Options) (OrderedAgreement, error) {
	o, err := o.withDefaults()
	if err != nil {
		return OrderedAgreement{}, err
	}
	r, err := newRatings(table)
	if err != nil {
		return OrderedAgreement{}, err
	}
	a := OrderedAgreement{N: r.n}
	if !r.varied() {
		if r.n > 0 {
			a.Observed, a.Chance = some(1), some(1)
		}
		return a, nil
	}
	observed, chance := r.weighted()
	a.Observed, a.Chance = some(observed), some(chance)
	a.Kappa = coefficient(r.weightedKappa, o)
	return a, nil
}

// weight is how near category k is to l, 1 for the same and 0 for the ends.
func (r *ratings) weight(k, l int) float64 {
	off := float64(k-l) / float64(len(r.row)-1)
	return 1 - off*off
}

func (r *ratings) weighted() (observed, chance float64) {
	var seen, guessed sum
	for k := range r.p {
		for l, share := range r.p[k] {
			seen.add(r.weight(k, l) * share)
			guessed.add(r.weight(k, l) * r.row[k] * r.col[l])
		}
	}
	return seen.value(), guessed.value()
}

// weightedKappa is (p_o − p_e)/(1 − p_e) of the weighted shares; with equal
// weights it and its se are those of kappa.
func (r *ratings) weightedKappa() (value, se float64) {
	observed, chance := r.weighted()
	value = (observed - chance) / (1 - chance)
	q := len(r.row)
	ofRow, ofCol := make([]float64, q), make([]float64, q) // mean weight against the other rater's shares
	for k := range q {
		for l := range q {
			ofRow[k] += r.weight(k, l) * r.col[l]
			ofCol[l] += r.weight(k, l) * r.row[k]
		}
	}
	squares := 0.0
	for k := range r.p {
		for l, share := range r.p[k] {
			d := r.weight(k, l) - (1-value)*(ofRow[k]+ofCol[l])
			squares += share * d * d
		}
	}
	return value, r.se(squares, observed-2*(1-value)*chance, chance)
}
