"""Legal judgement prediction: the paper's second half, on cases of CAIL2018."""
