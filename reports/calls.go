package reports

import (
	"evalrun/datasets"
	"evalrun/replay"
)

// callInputs returns the inputs of calls, by their ids, from records at those
// paths. Calls that are not there, or whose inputs were left out, are missing.
func callInputs(calls map[string]bool, paths ...string) (map[string]datasets.Value, error) {
	log, err := replay.Open(paths...)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	inputs := make(map[string]datasets.Value, len(calls))
	for record, err := range log.Calls(replay.Want{IDs: calls}) {
		if err != nil {
			return nil, err
		}
		inputs[record.ID] = record.Inputs
	}
	return inputs, nil
}
