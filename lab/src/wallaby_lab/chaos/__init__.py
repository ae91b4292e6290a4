"""Breaking real engines on purpose and looking at what they answer: the runs behind `wallaby chaos`."""
