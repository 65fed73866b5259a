// Package stats says what scores show: how good one candidate is, whether a
// second one is better, and how many rows it would take to know.
//
// It is opinionated. There is no menu of tests. The caller states what it has
// (paired scores, all of them 0 or 1 or not), the package picks the method and
// names it in the result, together with warnings that belong before a reader's
// eyes.
//
// # Two layers
//
// Every comparison is reported twice, and the two are never mixed. To keep
// them apart they have types of their own.
//
// The contract layer, [Range] and [Compare], returns the numbers every
// implementation of the FunctAI contract returns, digit for digit: its normal
// constant has seven digits and its Student table three decimals. Being equal
// everywhere is its whole purpose. It gives an [Interval] or a [Difference].
//
// The added layer, [Single] and [Paired], is right where the contract is weak:
// exact quantiles, ranges for 0/1 scores that do not collapse when few rows
// changed, a p-value, and a decision. It gives an [Estimate] or a [Test].
//
// # Which method when
//
//	scores                   range                       p-value
//	one candidate, 0/1       wilson                      none
//	one candidate, other     student-t                   none
//	two on the same rows     tango (else bonett-price)   mcnemar-midp
//	  both 0/1
//	two on the same rows     student-t on differences    sign-flip up to 20 rows that differ,
//	  other                                              else sign-flip-sampled
//	fewer than two rows      none                        as above, none without rows
//
// Rows that come in groups, such as the turns of conversations: [ClusterMean] and
// [PairedClusters], with few groups [WildCluster]; how much they depend on each
// other, [ICC] and [DesignEffect]. Several answers to a row: [VarianceComponents].
// Rows that are missing: [MissingBounds] and [MissingBoundsPaired].
//
// Several candidates: [MaxT] and [WestfallYoung] where the scores are at hand, [Holm]
// where only p-values are; the score of the one that won, [WinnerOptimism] and
// [WinnerConditional]. Many slices: [ShrinkRates] or [ShrinkSlices], and
// [BenjaminiHochberg].
//
// Looking before all rows are in: [HedgedCapital] for a range that holds at every look,
// [SignEvidence] for which of two is better; who of many is to be asked next,
// [Halving], [LUCBRadius], [SuccessiveRejects].
//
// Whether two raters agree, as a judge and a person, is said by [Agree], with ordered
// verdicts by [AgreeOrdered]; whether a judge of pairs looks at their order, by
// [Orders.Bias], or at their length, by [PreferLonger]. A judge's scores corrected by
// people's: [PPIPlusPlus], its rates: [CorrectRate].
//
// # Steps
//
//  1. Bring every candidate to one score a row: average the answers first if a
//     row was asked several times, and pass 0 for a row that failed.
//  2. Keep both candidates' scores in the same row order. They are always paired;
//     two ranges that overlap say nothing about the difference.
//  3. Call [Compare] for the contract fields and [Paired] for the added ones.
//     State in [Options] whether all scores are 0 or 1, and, if equality is of
//     interest, the margin: the smallest difference that would matter.
//  4. Act on [Test.Decision], and show [Test.Warnings].
//
// # Words
//
// A row is the unit that is observed, however many answers it got. A
// difference is candidate minus baseline, in the units of the score: for 0/1
// scores 0.05 is five points. A row is better, worse or the same by the sign
// of its difference; two 0/1 scores disagree when one is right and the other
// wrong. A range is a two-sided confidence interval. The smallest detectable
// difference is the one that this many rows would show with probability
// [Options.Power]. No difference is only ever claimed as an equivalence:
// the range lies inside the margin. Everything that is not decided is
// too-few-rows, which is not the same as "nothing changed".
//
// # Promises
//
// Numbers are finite or absent ([Opt]); no NaN and no infinity leaves the
// package. The same input gives the same bytes: the only random numbers are
// drawn from [Options.Seed]. There are no goroutines, and all functions may be
// called from many.
package stats
