'''The claims of five papers, judged on the lab's rows.

Each row of claims is a function in `papers/p12.py` to `papers/p21.py`, with the paper's sentence as its docstring, and
`papers/judge.py` has the vocabulary. A claim of your own is a function of three lines. It takes the rows of
`playrate_lab.read`:

```python
from papers.judge import Finding, Results, Trials, below, finding


def cubic_stalls_less(results: Results) -> Finding:
    """On the built-in path cubic stalls for less time than reno."""
    stalled = Trials(results, conditions=["three-controllers"], controllers=["cubic", "reno"]).of("frozen_s")
    return finding("cubic stalls less than reno", below(stalled["cubic"], stalled["reno"]), primary=True)
```

`Finding` has the outcome, the mean difference with its 95 % interval, an effect size and the chance level.
'''
