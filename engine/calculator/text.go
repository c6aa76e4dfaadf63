package calculator

func (q *Input) sentence(a *Answer, decides *AnswerVariation) string { return "" }
