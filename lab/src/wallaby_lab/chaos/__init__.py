"""Break real engines on purpose and check their answers: the runs behind `wallaby chaos`."""
