package chartroom

import (
	"testing"

	servicev1 "chartroom.example/client/service/v1"
)

func piece(attempt, step int32, offset int64, data string) *servicev1.StreamActionLogsResponse {
	return &servicev1.StreamActionLogsResponse{Attempt: attempt, StepIndex: step, Offset: offset, Data: []byte(data)}
}

// A resumed log stream sends all pieces again, cut differently, and those of another attempt.
func TestLogsGoOnBehindWhatCame(t *testing.T) {
	request := &servicev1.StreamActionLogsRequest{AfterOffset: 2}
	place := &logPlace{request: request}
	for _, each := range []struct {
		piece *servicev1.StreamActionLogsResponse
		// What is new; empty for nothing.
		data            string
		offset, leftOut int64
	}{
		{piece(1, 0, 2, "cd"), "cd", 2, 0},
		{piece(1, 0, 0, "abcd"), "", 0, 0},
		{piece(1, 0, 0, "abcdef"), "ef", 4, 0},
		{piece(1, 0, 9, "j"), "j", 9, 3},
		{piece(1, 1, 0, "x"), "x", 0, 0},
		{piece(1, 0, 10, "k"), "", 0, 0},
		{piece(2, 0, 0, "ab"), "ab", 0, 0},
		{piece(1, 1, 1, "y"), "", 0, 0},
	} {
		given := string(each.piece.Data)
		isNew := place.take(each.piece)
		if isNew != (each.data != "") {
			t.Fatalf("%q: new is %t", given, isNew)
		}
		if isNew && (string(each.piece.Data) != each.data || each.piece.Offset != each.offset || each.piece.LeftOutBytes != each.leftOut) {
			t.Errorf("%q became %v", given, each.piece)
		}
	}
	if request.AfterOffset != 0 {
		t.Error("the offset of the first attempt would hold for the second")
	}
}
