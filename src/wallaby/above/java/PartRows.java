package wallaby;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.rdd.UnionRDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.SparkPlan;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.reflect.ClassTag$;

/** The rows of a run while somebody can read them: kept in the TaskManagers, or Spark's own. */
public class PartRows implements PartRdd.Source, KeptRdds.Reported {
    private final PartRun run;
    private volatile RDD made = null;
    /** The name of the kept rows; null if Spark computes them. */
    private volatile String kept = null;
    private Object[] figures = null;
    /** Does `made` raise an error, because the rows are gone? */
    private boolean isRaising = false;
    /** How many partitions Spark was told of; 0 if it has not asked. */
    private int count = 0;
    /** A failure that the execution is told when it submits a job, and that execution. */
    private KeptPlans.WallabyException late = null;
    private String lateIn = null;
    private List<WeakReference> nodes = new ArrayList<WeakReference>();

    public PartRows(PartRun run) {
        this.run = run;
    }

    /** Tell a node of a physical plan what has run. */
    synchronized void add(KeptPlans.Exec node) {
        List<WeakReference> left = new ArrayList<WeakReference>();
        for (int at = 0; at < nodes.size(); at++) {
            if (((WeakReference) nodes.get(at)).get() != null) {
                left.add((WeakReference) nodes.get(at));
            }
        }
        left.add(new WeakReference(node));
        nodes = left;
    }

    public RDD prepared() {
        return made;
    }

    public boolean isKept() {
        return kept != null;
    }

    /**
     * Spark remembers an exception that comes while it makes the RDDs of a plan, and operators such as exchanges ask for
     * the number of partitions then. So a failure waits until the same execution submits a job; the next one runs the part
     * again, in so many partitions.
     */
    public synchronized int count() {
        if (count == 0) {
            try {
                count = prepare().getNumPartitions();
            } catch (KeptPlans.WallabyException failed) {
                String execution = run.plans.rdds.context().getLocalProperty(KeptRdds.EXECUTION);
                if (failed.partitions == 0 || execution == null || !makesRdds()) {
                    throw failed;
                }
                late = failed;
                lateIn = execution;
                count = failed.partitions;
            }
        }
        return count;
    }

    private static boolean makesRdds() {
        StackTraceElement[] callers = Thread.currentThread().getStackTrace();
        for (int at = 0; at < callers.length; at++) {
            if (callers[at].getMethodName().equals("doExecute")) {
                return true;
            }
        }
        return false;
    }

    private void raiseLate() {
        KeptPlans.WallabyException failed = late;
        late = null;
        if (failed != null && lateIn.equals(run.plans.rdds.context().getLocalProperty(KeptRdds.EXECUTION))) {
            throw failed;
        }
    }

    public synchronized RDD prepare() {
        String gone = run.gone();
        if (gone != null) {
            return raising(gone);
        }
        raiseLate();
        KeptRdds rdds = run.plans.rdds;
        if (made == null) {
            made = rdds.isClosed() ? run.onSpark(count).execute() : begin();
            if (count > 0) {
                made = fitted(made, count);
            }
        } else if (kept != null && !run.stays && (rdds.isClosed() || !rdds.isThere(kept))) {
            int before = made.getNumPartitions();
            made = fitted(run.onSpark(before).execute(), before);
            kept = null;
            figures = null;
        }
        for (int at = 0; at < nodes.size(); at++) {
            KeptPlans.Exec node = (KeptPlans.Exec) ((WeakReference) nodes.get(at)).get();
            if (node != null) {
                node.tell(figures);
            }
        }
        return made;
    }

    private RDD raising(String why) {
        if (!isRaising) {
            made = run.raising(why, made == null ? Math.max(count, 1) : made.getNumPartitions());
            isRaising = true;
            kept = null;
            figures = null;
        }
        return made;
    }

    /** Called when a lost TaskManager's part of the rows is made again. */
    public synchronized void lose() {
        if (figures != null && figures[1] != null) {
            figures[5] = Long.valueOf(((Number) figures[5]).longValue() + 1);
        }
        for (int at = 0; at < nodes.size(); at++) {
            KeptPlans.Exec node = (KeptPlans.Exec) ((WeakReference) nodes.get(at)).get();
            if (node != null) {
                node.lose();
            }
        }
    }

    private RDD begin() {
        Object[] answer = ((List) Calls.apply(run.plans.rdds.context(), run.plans.start, run)).toArray();
        if (answer[0] instanceof String) {
            KeptPlans.WallabyException failed =
                new KeptPlans.WallabyException((String) answer[0], (String) answer[1], (String) answer[2]);
            failed.partitions = ((Number) answer[3]).intValue();
            throw failed;
        }
        RDD found = ((SparkPlan) answer[0]).execute();
        kept = (String) answer[1];
        figures = answer;
        if (kept != null) {
            run.plans.rdds.report(kept, this);
            run.rows = ((Number) answer[2]).longValue();
            run.bytes = ((Number) answer[3]).longValue();
            if (run.stays) {
                run.plans.rdds.stay(run.id, kept, found);
            } else {
                run.plans.rdds.hold(found, kept, run.bytes);
            }
        }
        return found;
    }

    /**
     * Rows in so many partitions as the kept ones had. Sorted rows have no more: there are as many ranges as partitions
     * of a shuffle. So their order does not change.
     */
    private RDD fitted(RDD rows, int count) {
        int there = rows.getNumPartitions();
        if (there > count) {
            return rows.coalesce(count, false, Option.empty(), null);
        }
        if (there == count) {
            return rows;
        }
        RDD none = new JavaSparkContext(run.plans.rdds.context()).parallelize(new ArrayList(), count - there).rdd();
        return new UnionRDD(
            run.plans.rdds.context(), (Seq) KeptPlans.one(none).prepended(rows), ClassTag$.MODULE$.apply(InternalRow.class));
    }
}
