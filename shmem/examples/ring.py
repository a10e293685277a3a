# A token goes round the ring of PEs, by a put with a signal to the next one: Python with shmem4py and NumPy.
#
# Build: python3 -m venv ~/shmem
#        OSHCC=~/opt/pelago/bin/oshcc ~/shmem/bin/pip install --no-binary shmem4py 'numpy<2' shmem4py==1.0.0
# Run:   ~/opt/pelago/bin/oshrun -n 4 ~/shmem/bin/python ring.py
# Prints:
#   the token has passed 4 PEs
import numpy
from shmem4py import shmem

me, n = shmem.my_pe(), shmem.n_pes()
following = (me + 1) % n
token = shmem.zeros(1, dtype="int64")  # symmetric: every PE has one
arrived = shmem.new_signal()


def give(count):
    shmem.put_signal(token, numpy.array([count]), following, arrived, 1, shmem.SIGNAL_SET)


if me == 0:
    give(1)
shmem.signal_wait_until(arrived, shmem.CMP.EQ, 1)
if me == 0:
    print("the token has passed", token[0], "PEs")
else:
    give(token[0] + 1)
shmem.barrier_all()
