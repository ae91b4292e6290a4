package wallaby;

import java.util.HashSet;
import java.util.Set;
import org.apache.spark.Dependency;
import org.apache.spark.OneToOneDependency;
import org.apache.spark.Partition;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.storage.RDDInfo;
import org.apache.spark.sql.catalyst.InternalRow;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.reflect.ClassTag$;

/**
 * The rows of a part. What reads them is decided for each job, not when Spark makes a plan's RDDs.
 *
 * Spark's plans remember their RDDs, and remember an error as well. So nothing runs while RDDs are made: a part that failed or
 * was cancelled runs again in the next action. And a plan that has run can be executed when the kept rows are gone, because
 * other rows take their place.
 *
 * It exists only in the driver. Tasks get the RDD that reads the rows, and its partitions: both are written in the place of
 * ours.
 */
public class PartRdd extends RDD {
    /** In this thread of Spark's nothing may wait for a job. Each job was prepared by the thread that submitted it. */
    private static final String SCHEDULER = "dag-scheduler-event-loop";

    public final Source source;

    public PartRdd(SparkContext context, Source source) {
        super(context, (Seq) Nil$.MODULE$, ClassTag$.MODULE$.apply(InternalRow.class));
        this.source = source;
    }

    /** Does a job over this RDD read kept rows? Not if Spark has what is made of them in its cache. */
    static boolean isBelow(RDD rdd) {
        return isBelow(rdd, new HashSet());
    }

    private static boolean isBelow(RDD rdd, Set seen) {
        if (rdd instanceof PartRdd) {
            return ((PartRdd) rdd).source.isKept();
        }
        if (!seen.add(rdd) || isCached(rdd)) {
            return false;
        }
        scala.collection.Iterator below = rdd.dependencies().iterator();
        while (below.hasNext()) {
            if (isBelow(((Dependency) below.next()).rdd(), seen)) {
                return true;
            }
        }
        return false;
    }

    private static boolean isCached(RDD rdd) {
        RDDInfo[] stored = rdd.context().getRDDStorageInfo();
        for (int at = 0; at < stored.length; at++) {
            if (stored[at].id() == rdd.id()) {
                return stored[at].numCachedPartitions() == stored[at].numPartitions();
            }
        }
        return false;
    }

    /** Finds the RDD that reads the rows. */
    public interface Source {
        /** For a new job; may take as long as the part runs. Always has as many partitions as `count` says. */
        RDD prepare();

        /** The number of partitions. If only a run tells, it prepares one; a failure is raised when a job is submitted. */
        int count();

        /** As it was prepared last. */
        RDD prepared();

        /** Are the rows kept in TaskManagers, not computed by Spark? */
        boolean isKept();
    }

    public Partition[] getPartitions() {
        Partition[] made = new Partition[source.count()];
        for (int at = 0; at < made.length; at++) {
            made[at] = new Place(source, at);
        }
        return made;
    }

    public Seq getDependencies() {
        return (Seq) Nil$.MODULE$.prepended(new Prepared(source));
    }

    public scala.collection.Iterator compute(Partition split, TaskContext context) {
        RDD rows = source.prepared();
        return rows.iterator(rows.partitions()[split.index()], context);
    }

    protected Object writeReplace() {
        return source.prepared();
    }

    /** Spark follows the dependencies of all RDDs of a job in the thread that submits it, before the scheduler does. */
    public static class Prepared extends OneToOneDependency {
        private final transient Source source;

        public Prepared(Source source) {
            super(null);
            this.source = source;
        }

        public RDD rdd() {
            return SCHEDULER.equals(Thread.currentThread().getName()) ? source.prepared() : source.prepare();
        }
    }

    public static class Place implements Partition {
        private final transient Source source;
        private final int index;

        public Place(Source source, int index) {
            this.source = source;
            this.index = index;
        }

        public int index() {
            return index;
        }

        public boolean equals(Object other) {
            return this == other;
        }

        public int hashCode() {
            return index;
        }

        /** Required by Spark's trait. */
        public boolean org$apache$spark$Partition$$super$equals(Object other) {
            return this == other;
        }

        protected Object writeReplace() {
            return source.prepared().partitions()[index];
        }
    }
}
