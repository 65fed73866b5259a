package stats

import (
	"fmt"
	"math"
)

// Components splits how a mean score varies into what comes from the rows and
// what comes from asking again, in squared units of the score (Miller 2024).
type Components struct {
	Rows     int `json:"rows"`
	Mean     Opt `json:"mean"`      // of the rows' mean answers
	RowMeans Opt `json:"row_means"` // variance of the rows' mean answers; absent under two rows
	Within   Opt `json:"within"`    // variance of one answer about its row's true score; absent if no row has two answers
	Between  Opt `json:"between"`   // variance of the rows' true scores, at least 0
	SE       Opt `json:"se"`        // of the mean, as asked
	Floor    Opt `json:"floor"`     // of the mean, were every row asked without end
}

// VarianceComponents tells from rows that were answered more than once how much
// more answers would help. answers holds the scores of each row's answers.
// Within is the mean over rows of the variance with K-1, Between the variance
// of the row means less the mean over rows of that variance divided by K, and
// not below 0. Rows with one answer take Within for their variance.
//
// With [Components.SEWith] it answers "how many answers a row": the smallest
// number after which the standard error hardly falls. Within and Between are
// what [Noise] wants.
//
// A row without an answer, and scores that are not finite or beyond ±1e100, are
// errors: score a failed answer 0.
func VarianceComponents(answers [][]float64) (Components, error) {
	c := Components{Rows: len(answers)}
	means := make([]float64, len(answers))
	variances := make([]float64, len(answers))
	var within sum
	repeated := 0.0
	for i, row := range answers {
		if len(row) == 0 {
			return Components{}, fmt.Errorf("splitting variance: row %d has no answer: score a failed answer 0", i)
		}
		if err := checkNumbers("splitting variance", fmt.Sprintf("row %d, answer", i), row); err != nil {
			return Components{}, err
		}
		mean, sd := moments(rounded(row))
		means[i], variances[i] = mean, sd*sd
		if len(row) > 1 {
			within.add(sd * sd)
			repeated++
		}
	}
	if c.Rows == 0 {
		return c, nil
	}
	n := float64(c.Rows)
	mean, sd := moments(rounded(means))
	c.Mean = some(mean)
	if c.Rows > 1 {
		c.RowMeans, c.SE = some(sd*sd), some(sd/math.Sqrt(n))
	}
	if repeated == 0 {
		return c, nil
	}
	noise := within.value() / repeated
	c.Within = some(noise)
	if c.Rows > 1 {
		var ofMeans sum
		for i, row := range answers {
			v := variances[i]
			if len(row) == 1 {
				v = noise
			}
			ofMeans.add(v / float64(len(row)))
		}
		c.Between = some(max(0, sd*sd-ofMeans.value()/n))
		c.Floor = some(math.Sqrt(c.Between.v / n))
	}
	return c, nil
}

// SEWith returns the standard error of the mean with so many answers for every
// row, √((Between + Within/answers)/rows); absent if it is not known, and below
// one answer.
func (c Components) SEWith(answers int) Opt {
	between, ok := c.Between.Get()
	if !ok || answers < 1 {
		return Opt{}
	}
	return some(math.Sqrt((between + c.Within.v/float64(answers)) / float64(c.Rows)))
}
